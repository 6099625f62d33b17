"""The program as its user runs it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.defaults import DEFAULT_COUNTS
from tests.integration.agents import run_cli
from tests.integration.terminals import ANSI, in_terminal, terminal


def test_the_demo_shows_the_node_and_says_what_runs_out() -> None:
    done = run_cli("demo", "--node-name=n1")
    assert done.returncode == 0
    assert done.stderr == ""
    for name, count in DEFAULT_COUNTS.items():
        assert len(re.findall(rf"^  {re.escape(name)}: +{count}$", done.stdout, re.MULTILINE)) == 2
    assert "1 Insufficient nvidia.com/gpumem." in done.stdout
    assert re.search(r"\nnvidia.com/gpumem +65536 +65536 +0 .*ran out\n", done.stdout)
    assert re.search(r"^nvidia.com/gpu +20 +4 +16 ", done.stdout, re.MULTILINE)
    assert not ANSI.search(done.stdout)


def test_the_demo_follows_the_flags() -> None:
    flags = ("--nvidia-cards=0", "--iluvatar-cards=0", "--ascend-cards=0", "--mlu-split=3")
    done = run_cli("demo", *flags)
    assert done.returncode == 0
    assert "1 Insufficient cambricon.com/vmlu." in done.stdout
    assert "nvidia.com" not in done.stdout


def test_the_demo_of_no_cards_says_so() -> None:
    none = [f"--{vendor}-cards=0" for vendor in ("nvidia", "mlu", "iluvatar", "ascend")]
    done = run_cli("demo", *none)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing to show" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_that_keeps_on_ends_with_a_signal_and_leaves_nothing(
    socket_folder: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "hami_mock", "demo", "--keep", "--nvidia-memory=64"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(socket_folder)},
    )
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            if "pods are running." in line:
                break
        process.send_signal(number)
        assert process.wait(timeout=10) == 0
    assert list(socket_folder.iterdir()) == []


def test_the_demo_says_that_the_temporary_folder_is_too_deep(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 50)
    deep.mkdir()
    done = run_cli("demo", TMPDIR=str(deep))
    assert done.returncode == 1
    assert "set TMPDIR to a short path" in done.stderr


def test_the_demo_is_colourful_in_a_terminal() -> None:
    shown = in_terminal("demo", "--nvidia-memory=64", "--ascend-cards=0")
    assert shown.process.returncode == 0
    assert ANSI.search(shown.output)
    assert "█" in shown.output


def test_a_scenario_that_cannot_happen_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "drill.yaml"
    file.write_text("steps: [{fail: nvidia/2, for: 1m}, {fail: mlu, xid: 79, for: 1m}]")
    done = run_cli("scenario", "check", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"hami-mock: {file}: steps[0].fail: there is no card 'nvidia/2' on this node: it has "
        "nvidia/0, nvidia/1, mlu/0, mlu/1, iluvatar/0, iluvatar/1, ascend/0, ascend/1",
        f"hami-mock: {file}: steps[1].xid: 79 is not allowed: only NVIDIA cards have Xids, not "
        "mlu/0, mlu/1: give a reason instead",
    ]
    done = run_cli("scenario", "check", str(file), "--nvidia-cards=3", "--mlu-cards=0")
    assert done.returncode == 2
    file.write_text("steps: [{fail: nvidia/2, xid: 79, for: 1m}]")
    assert run_cli("scenario", "check", str(file), "--nvidia-cards=3").returncode == 0


def test_plan_says_what_run_would_register() -> None:
    done = run_cli("plan", "-o", "json")
    rows = json.loads(done.stdout)["resources"]
    assert {row["resource"]: row["count"] for row in rows} == DEFAULT_COUNTS


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (["-nvidia_cards", "-1"], {}, "--nvidia-cards: '-1' is not allowed"),
        (["--nvida-cards=1"], {}, "--nvida-cards: there is no such flag; did you mean"),
        (["--nvidia-memory=1000000"], {}, "the smallest memory factor that fits is"),
        ([], {"HAMI_MOCK_NVIDIA_CARDS": "many"}, "HAMI_MOCK_NVIDIA_CARDS: 'many' is not allowed"),
        ([], {"HAMI_MOCK_NVIDIA_CARD": "1"}, "HAMI_MOCK_NVIDIA_CARD: there is no such variable"),
        (["--config=/no/such/file"], {}, "--config: can't read '/no/such/file'"),
        (["--resource-mem=nvidia.com/gpu"], {}, "each resource needs its own name"),
        (["rnu"], {}, "'rnu' is not a command"),
    ],
)
def test_bad_input_ends_with_2_and_a_line_before_anything_is_registered(
    socket_folder: Path, arguments: list[str], environment: dict[str, str], expected: str
) -> None:
    done = run_cli(*arguments, HAMI_MOCK_SOCKET_DIR=str(socket_folder), **environment)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert all(line.startswith("hami-mock: ") for line in done.stderr.splitlines())
    assert list(socket_folder.iterdir()) == []


def test_the_demo_can_be_tried_with_the_command_that_it_prints(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Set for all tests; here the embedded kubelet's own socket is wanted.
    monkeypatch.delenv("HAMI_MOCK_POD_RESOURCES_SOCKET")
    sockets = socket_folder / "s"
    sockets.mkdir()
    flags = (f"--socket-dir={sockets}", f"--control-socket={socket_folder}/c.sock")
    with terminal("demo", "--keep", *flags, "--nvidia-memory=64", columns=200) as screen:
        screen.read_until("pods are running.")
        assert (sockets / "kubelet.sock").is_socket()
        (export,) = (line for line in screen.lines if line.startswith("  export "))
        assert export.endswith(f"={socket_folder}/c.sock")
        (command,) = (line for line in screen.lines if line.endswith(" fail nvidia/0"))
        done = subprocess.run(
            f"{export}; {command}",
            shell=True,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        screen.read_until("CardFailed: nvidia/0: unhealthy")
        done = run_cli("ctl", "status", f"--control-socket={socket_folder}/c.sock", "-o", "json")
        holders = [
            holder for card in json.loads(done.stdout)["cards"] for holder in card["holders"]
        ]
        assert any(holder["pod"].startswith("nvidia-") for holder in holders)
        # What the agent logs would stand in the middle of the table, also after a change.
        run_cli("ctl", "set", "ignored-xids=79", f"--control-socket={socket_folder}/c.sock")
        screen.read_until("ConfigurationChanged")
        run_cli("ctl", "recover", "all", f"--control-socket={socket_folder}/c.sock")
        screen.read_until("CardRecovered")
        assert not re.search(r"Z (INFO|WARNING)", screen.output)
    # The user's own folder stays, as empty as it was.
    assert list(sockets.iterdir()) == []


def test_the_demo_plays_a_scenario_and_serves_http(socket_folder: Path) -> None:
    file = socket_folder / "drill.yaml"
    file.write_text("steps: [{at: 0s, fail: mlu/1, for: 1h}]")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with terminal("demo", f"--scenario={file}", f"--http-listen={address}", columns=200) as screen:
        screen.read_until("CardFailed: mlu/1")
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            assert b"hami_mock" in answer.read()


def test_the_demo_does_not_take_the_place_of_a_real_kubelet(socket_folder: Path) -> None:
    (socket_folder / "kubelet.sock").touch()
    done = run_cli("demo", f"--socket-dir={socket_folder}")
    assert done.returncode == 2
    assert "has a kubelet.sock already" in done.stderr
    done = run_cli("demo", f"--socket-dir={socket_folder}/none")
    assert done.returncode == 2
    assert "--socket-dir" in done.stderr
