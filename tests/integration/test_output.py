"""Where the output goes: narrow terminals, pipes that break, disks that are full, plain ASCII."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from hami_mock.cli.commands import COMMANDS
from tests.integration.agents import run_cli
from tests.integration.terminals import PROGRAM, in_terminal, terminal

FLEET = """\
nodes:
- match: 'gpu-*'
  nvidia: {groups: [{cards: 4, numa: [0, 0, 1, 1], nvlink: [[0, 1], [2, 3]]}]}
"""


def check_fits(columns: int, *arguments: str) -> None:
    shown = in_terminal(*arguments, columns=columns)
    assert shown.process.returncode == 0
    # A path can't be broken.
    paths = re.compile("/(var|run|tmp)/")
    assert [x for x in shown.lines if len(x) > columns and not paths.search(x)] == []
    assert len(shown.lines) > 1 or arguments == ("version", "--help")


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("words", ["", "ctl", "ctl fail", *(c for c in COMMANDS if c != "ctl")])
def test_help_fits_the_terminal(words: str, columns: int) -> None:
    check_fits(columns, *words.split(), "--help")


@pytest.mark.parametrize("words", ["models", "plan", "plan --all-nodes"])
def test_tables_fit_the_terminal(words: str, tmp_path: Path) -> None:
    check_fits(80, *words.split(), *config(tmp_path, words))


def config(folder: Path, words: str) -> list[str]:
    if words == "models":
        return []
    file = folder / "fleet.yaml"
    file.write_text(FLEET)
    return ["--config", str(file), "--node-name", "gpu-7"]


def test_the_demo_that_keeps_on_stays_in_its_place_in_80_columns() -> None:
    with terminal("demo", "--keep", "--nvidia-memory=64", "--ascend-cards=0") as screen:
        screen.read_until("\x1b[J")
        screen.read_until("pods are running.")
        _, _, drawn_again = screen.output.partition("\x1b[J")
        screen.process.terminate()
        screen.read_all()
    before, _, _ = screen.output.partition("\x1b[J")
    table = before[before.rindex("RESOURCE") :]
    # As many lines up as the table had, none of them folded by the terminal.
    assert f"\x1b[{table.count(chr(10))}A" in before
    assert all(len(line) <= 80 for line in screen.lines if not line.startswith("  /"))
    assert drawn_again


@pytest.mark.parametrize("command", ["models", "plan", "demo", "help", "ctl"])
def test_a_reader_that_has_seen_enough_is_no_error(command: str) -> None:
    done = subprocess.run(
        f"{' '.join(PROGRAM)} {command} --help | head -1; "
        f"{' '.join(PROGRAM)} {command} | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.endswith("\n0\n")
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize("command", ["models", "plan -o json", "demo", "help", "run --help", "ctl"])
@pytest.mark.parametrize(
    ("target", "reason"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_output_that_can_not_be_written_is_one_line(
    command: str, target: str, reason: str, socket_folder: Path
) -> None:
    done = subprocess.run(
        f"{' '.join(PROGRAM)} {command} {target}",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"TMPDIR": str(socket_folder)},
    )
    assert done.returncode == 1
    assert done.stderr == f"hami-mock: can't write to standard output: {reason}\n"
    assert list(socket_folder.iterdir()) == []


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
@pytest.mark.parametrize("command", ["ctl", "models", "demo", "plan"])
def test_a_stdout_of_ascii_gets_ascii(command: str, environment: dict[str, str]) -> None:
    done = run_cli(command, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    if command == "ctl":
        assert "set, events, ...\n" in done.stdout


def test_an_error_in_ascii_is_readable() -> None:
    done = run_cli("ctl", "status", "--control-socket=/none", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert "kubectl exec POD -- hami-mock ctl ...)" in done.stderr


def test_bare_in_a_terminal_is_the_help() -> None:
    shown = in_terminal()
    assert shown.process.returncode == 0
    assert shown.lines[0] == "usage: hami-mock COMMAND [FLAGS]"


def test_bare_without_a_terminal_runs(socket_folder: Path) -> None:
    done = run_cli(HAMI_MOCK_SOCKET_DIR=str(socket_folder), HAMI_MOCK_NVIDIA_CARDS="x")
    assert done.returncode == 2
    assert done.stderr.startswith("hami-mock: HAMI_MOCK_NVIDIA_CARDS: 'x' is not allowed")


@pytest.mark.parametrize("words", ["help plan", "plan --help"])
def test_help_of_a_command(words: str) -> None:
    shown = run_cli(*words.split()).stdout
    assert shown.startswith("usage: hami-mock plan ")
    assert "\nexamples:\n  hami-mock plan" in shown
    assert "--hygon-cards" in shown


def test_the_short_help_leaves_rare_vendors_out() -> None:
    shown = run_cli("plan", "-h").stdout
    assert "--nvidia-cards" in shown
    assert "--hygon-cards" not in shown
