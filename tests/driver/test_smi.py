"""Our nvidia-smi: the table, the list, and how it ends."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hami_mock.views.driver.layout import STATE_VARIABLE
from tests.driver.smi import Smi
from tests.driver.state_file import MIB, StateFile, card_uuid, cut, live, mig_uuid

WIDTH = 91


@pytest.mark.parametrize("count", [1, 2, 8, 16, 128])
def test_every_line_of_the_table_is_as_wide(smi: Smi, state: StateFile, count: int) -> None:
    state.replaced(count).close()
    lines = smi.ask().splitlines()[1:]
    assert {len(line) for line in lines} == {WIDTH, WIDTH - 2}
    assert [line for line in lines if len(line) != WIDTH] == [" " * (WIDTH - 2)]
    middle = {line.index("|", 1) for line in lines if re.match(r"\| +\d+  NVIDIA", line)}
    assert middle == {42}


@pytest.mark.parametrize("count", [1, 128])
def test_the_table_has_the_numbers_of_the_state(smi: Smi, state: StateFile, count: int) -> None:
    state.replaced(count).close()
    told = smi.ask()
    head = r"\| NVIDIA-SMI 580\.65\.06 +Driver Version: 580\.65\.06 +CUDA Version: 13\.0 +\|"
    assert re.search(head, told)
    found = re.findall(
        r"\| +(\d+)  NVIDIA A100-SXM4-40GB +On  \| +00000000:..:00\.0 Off \| +(\d+) \|\n"
        r"\| (\d+)% +(\d+)C +P0 +(\d+)W / +400W \| +(\d+)MiB / +40960MiB \| +(\d+)% +Default \|\n"
        r"\| +\| +\| +Disabled \|",
        told,
    )
    assert [tuple(map(int, row)) for row in found] == [
        (i, 0, 45, live(i)["temperature"], 250, 1000 + i, live(i)["gpu"]) for i in range(count)
    ]
    processes = re.findall(r"\| +(\d+)   N/A  N/A +(\d+) +C   (\S+) +(\d+)MiB \|", told)
    assert [tuple(map(str, row)) for row in processes] == [
        (str(i), str(each["pid"]), each["name"], "600")
        for i in range(count)
        for each in live(i)["processes"]
    ]


def test_what_is_too_long_or_large_stays_in_its_column(smi: Smi, state: StateFile) -> None:
    process = live(0)["processes"][0]
    odd = {
        "power": 1_234_567,
        "power_limit": 1_400_000,
        "fan": 100,
        "temperature": 101,
        "gpu": 100,
        "performance_state": 15,
        "compute_mode": 3,
        "persistence_mode": 0,
        "ecc_dram_uncorrected": 123_456_789,
        "processes": [
            {**process, "name": "/usr/bin/" + "x" * 40, "pid": 4_194_303, "memory": 999_999 * MIB},
            {**process, "name": "y" * 38, "pid": 2, "type": 2},
        ],
    }
    state.set(0, live(0) | odd)
    told = smi.ask("-i", "0")
    assert {len(line) for line in told.splitlines()[1:]} == {WIDTH, WIDTH - 2}
    for text in ("1234W / 1400W |", "|100%  101C   P15 ", "100%   E. Process |", "123456789 |"):
        assert text in told
    assert f"4194303      C   ...{'x' * 35}     999999MiB |" in told
    assert f"{'y' * 38}        600MiB |" in told


def test_nobody_runs(smi: Smi, state: StateFile) -> None:
    for index in range(8):
        state.set(index, live(index) | {"process_count": 0})
    assert "|  No running processes found  " in smi.ask()


def test_mig_devices_have_a_table_of_their_own(smi: Smi, state: StateFile) -> None:
    told = smi.ask()
    assert "MIG devices:" not in told
    process = live(1)["processes"][0]
    inside = {"gpu_instance": 2, "compute_instance": 0}
    state.set(1, cut(1) | {"process_count": 1, "processes": [process | inside]})
    told = smi.ask()
    widths = {len(line) for line in told.splitlines()[1:]}
    assert widths == {WIDTH, WIDTH - 2, 0}
    found = re.findall(r"\|  1 +(\d+) +(\d+) +(\d+)  \| +(\d+)MiB / +(\d+)MiB    \| +(\d+) ", told)
    assert found == [("7", "0", "0", "0", "4864", "14"), ("2", "0", "1", "100", "19968", "28")]
    assert re.search(r"\| +1    2    0       1010      C   train-0 ", told)


def test_list(smi: Smi, state: StateFile) -> None:
    state.set(1, cut(1))
    lines = smi.ask("-L").splitlines()
    cards = [f"GPU {i}: NVIDIA A100-SXM4-40GB (UUID: {card_uuid(i)})" for i in range(8)]
    cards[2:2] = [
        f"  MIG 1g.5gb      Device  0: (UUID: {mig_uuid(1, 7)})",
        f"  MIG 2c.3g.20gb  Device  1: (UUID: {mig_uuid(1, 2)})",
    ]
    assert lines == cards


def test_a_container_sees_its_cards(
    smi: Smi, state: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", f"{card_uuid(5)},2")
    monkeypatch.setenv("CUDA_DEVICE_MEMORY_LIMIT_1", "3000m")
    assert smi.query("index,uuid,memory.total,count") == [
        ["0", card_uuid(5), "40960", "2"],
        ["1", card_uuid(2), "3000", "2"],
    ]
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "none")
    assert smi.run() == (6, "No devices were found\n")


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("0", [0]),
        ("3,1", [1, 3]),
        (card_uuid(6), [6]),
        ("00000000:1D:00.0", [2]),
        ("0000:1d:00.0,7,7", [2, 7]),
        ("5,99", [5]),
        ("5, 6", [5, 6]),
    ],
)
def test_choice(smi: Smi, state: StateFile, chosen: str, expected: list[int]) -> None:
    assert [int(index) for (index,) in smi.query("index", "-i", chosen)] == expected
    assert [int(index) for (index,) in smi.query("index", f"--id={chosen}")] == expected


def test_a_mig_device_is_no_card(smi: Smi, state: StateFile) -> None:
    state.set(1, cut(1))
    assert smi.run("-i", mig_uuid(1, 2)) == (6, "No devices were found\n")


def test_a_card_that_is_lost(smi: Smi, state: StateFile) -> None:
    state.set(1, live(1) | {"lost": 1})
    why = "GPU is lost.  Reboot the system to recover this GPU"
    assert smi.run() == (15, f"Unable to determine the device handle for GPU1: {why}\n\n\n")
    code, told = smi.run("-L")
    assert code == 15
    assert f"gpu 1: {why}" in told
    assert [card_uuid(i) in told for i in range(8)] == [i != 1 for i in range(8)]
    assert smi.query("index", "-i", "0") == [["0"]]


def test_no_driver(smi: Smi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    for arguments in ([], ["-L"], ["-q"], ["mig", "-lgi"]):
        code, told = smi.run(*arguments)
        assert code == 9
        assert "couldn't communicate with the NVIDIA driver" in told
    assert smi.run("--help")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--foo"], 255, "ERROR: Option --foo is not recognized."),
        (["-L", "-i", "0"], 2, "ERROR: Option -i is not valid for this command."),
        (["-L", "-l", "1"], 2, "ERROR: Option -l is not valid for this command."),
        (["-q", "--list-gpus"], 2, "ERROR: Option -q is not valid for this command."),
        (["-pm", "1", "-pl", "300"], 2, "Only one device modification may be done at a time."),
        (["-i", "99"], 6, "No devices were found"),
        (["-i", ""], 6, "No devices were found"),
        (["-i", "x" * 5000], 6, "No devices were found"),
        (["-q", "-d", "FOO"], 2, "Failed to parse --display/-d flags"),
        (["-d", "MEMORY"], 2, "Specify -q/--query and -d/--display"),
        (["--format=csv"], 255, "Option --format is not recognized."),
        (["-i"], 255, "Option -i is missing its value."),
        (["-i", "-q"], 255, "Option -i is missing its value."),
        (["-q", "-d"], 255, "Option -d is missing its value."),
        (["-pm"], 255, "Option -pm is missing its value."),
        (["mig", "-lgi", "-i"], 255, "Option -i is missing its value."),
        (["-l", "x"], 2, "must be greater than 0"),
        (["-lms", "0"], 2, "must be greater than 0"),
        (["-lms", "99999999999"], 2, "must be greater than 0"),
        (["-l", "1", "-c", "0"], 2, "needs a number of rounds"),
        (["dmon", "-s", "x"], 2, "There is no group x"),
        (["topo", "--foo"], 2, 'Option "--foo" is not recognized.'),
        (["mig", "--foo"], 2, 'Option "--foo" is not recognized.'),
    ],
)
def test_what_it_refuses(
    smi: Smi, state: StateFile, arguments: list[str], code: int, said: str
) -> None:
    got, told = smi.run(*arguments)
    assert (got, said in told) == (code, True), told


def test_what_it_says_of_nothing(smi: Smi, state: StateFile) -> None:
    assert smi.ask("-B") == "No excluded devices found.\n"
    for command in ("topo", "nvlink", "mig"):
        assert smi.ask(command) == smi.ask("--help")


def test_again_and_again(smi: Smi, state: StateFile) -> None:
    query = ["--query-gpu=index", "--format=csv", "-i", "3"]
    assert smi.ask(*query, "-lms", "1", "-c", "3") == "index\n3\n3\n3\n"
    assert smi.ask(*query, "--loop-ms=1", "--count=2") == "index\n3\n3\n"
    running = ["--query-compute-apps=process_name", "--format=csv", "-i", "3"]
    lines = smi.ask(*running, "-lms", "1", "-c", "2").split()
    assert lines == ["process_name", *[each["name"] for each in live(3)["processes"]] * 2]
    assert smi.ask("-i", "0", "-lms=1", "-c", "2").count("Driver Version") == 2


def test_it_shows_what_changes_meanwhile(smi: Smi, state: StateFile) -> None:
    with subprocess.Popen(
        [smi.path, "--query-gpu=utilization.gpu", "--format=csv,noheader", "-i", "0", "-lms", "5"],
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "40 %\n"
        state.set(0, live(0) | {"gpu": 77})
        assert any(line == "77 %\n" for line in running.stdout)
        state.replaced(1).close()
        assert any(line == "40 %\n" for line in running.stdout)
        running.terminate()


def test_versions(smi: Smi, state: StateFile) -> None:
    told = dict(line.split(":") for line in smi.ask("--version").replace(" ", "").splitlines())
    assert told == {
        "NVIDIA-SMIversion": "580.65.06",
        "NVMLversion": "580.65",
        "DRIVERversion": "580.65.06",
        "CUDAVersion": "13.0",
    }


def test_it_is_small_and_needs_nothing(smi: Smi, state: StateFile, tmp_path: Path) -> None:
    assert smi.path.stat().st_size < 128 * 1024
    program_headers = subprocess.run(
        ["readelf", "-lW", smi.path], capture_output=True, text=True, check=True
    ).stdout
    assert "INTERP" not in program_headers
    assert "DYNAMIC" not in program_headers
    if os.geteuid() != 0:
        pytest.skip("only root can change its root")
    empty = tmp_path / "root"
    (empty / "run/hami-mock/driver").mkdir(parents=True)
    shutil.copy(smi.path, empty)
    shutil.copytree(state.folder, empty / "run/hami-mock/driver/state")
    inside = "import os, sys; os.chroot(sys.argv[1]); os.execve('/nvidia-smi', ['smi', '-L'], {})"
    done = subprocess.run(
        [sys.executable, "-c", inside, empty], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 8


def test_it_finds_the_state_beside_its_folder(
    smi: Smi, state: StateFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.delenv(STATE_VARIABLE)
    copy = Smi(Path(shutil.copy(smi.path, tmp_path / "bin")))
    assert len(copy.ask("-L").splitlines()) == 8


def test_output_that_nobody_takes_ends_it(smi: Smi, state: StateFile) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([smi.path], stdout=full, check=False, timeout=60)
    assert done.returncode == 1
