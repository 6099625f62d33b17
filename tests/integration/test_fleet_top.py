"""`hami-mock fleet top`, in a terminal and without one, against a fleet's control socket."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from hami_mock.control.server import ControlServer
from hami_mock.fleet.control import FleetCommands
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.running import Options, Running
from tests.integration.agents import run_cli
from tests.integration.terminals import Terminal, terminal
from tests.invented_fleet import invented_fleet, work

OPEN, CLOSE = "\x1b[?1049h", "\x1b[?1049l"


@contextmanager
def told_fleet(fleet: Fleet, path: str) -> Iterator[BlockingPortal]:
    """Answer on a control socket for a fleet that no API server has."""
    running = Running(fleet, cast(Any, None), Options(control_socket=path))
    running.controller.is_settled = True
    with start_blocking_portal() as portal:
        task, _ = portal.start_task(ControlServer(path, partial(FleetCommands, running)).run)
        try:
            yield portal
        finally:
            task.cancel()


@pytest.fixture
def path(socket_folder: Path) -> str:
    return str(socket_folder / "fleet.sock")


@pytest.fixture
def fleet(tmp_path: Path, path: str) -> Iterator[Fleet]:
    fleet = invented_fleet(tmp_path)
    work(fleet)
    with told_fleet(fleet, path):
        yield fleet


def at(path: str) -> tuple[str, ...]:
    return "--control-socket", path, "--name", "demo"


def end_of(screen: Terminal) -> int:
    screen.read_all()
    return screen.process.wait(timeout=10)


@pytest.mark.usefixtures("fleet")
def test_a_change_is_shown_and_a_key_quits(path: str) -> None:
    with terminal("fleet", "top", *at(path), lines=24) as screen:
        screen.read_until("Nothing has happened yet.")
        assert OPEN in screen.output
        assert "24 nodes, 24 ready, 167 pods, 8 x A100-SXM4-80GB" in screen.output
        told = run_cli("fleet", "fail", "rack=a100-r1", *at(path))
        assert told.returncode == 0, told.stderr
        screen.read_until("64 cards failed")
        os.write(screen._screen, b"q")
        assert end_of(screen) == 0
        assert screen.output.endswith(f"\x1b[?25h{CLOSE}")


def test_the_end_of_the_process_is_the_end(tmp_path: Path, path: str) -> None:
    with told_fleet(invented_fleet(tmp_path), path):
        screen_context = terminal("fleet", "top", *at(path))
        screen = screen_context.__enter__()
        screen.read_until("Nothing has happened yet.")
    assert end_of(screen) == 1
    assert f"no fleet 'demo' runs here (nothing listens on {path}" in screen.output
    assert screen.output.index(CLOSE) < screen.output.index("no fleet")
    screen_context.__exit__(None, None, None)


@pytest.mark.usefixtures("fleet")
def test_without_a_terminal_there_is_one_plain_frame_and_scripts_get_the_rows(path: str) -> None:
    plain = run_cli("fleet", "top", *at(path))
    assert plain.returncode == 0, plain.stderr
    assert "\x1b" not in plain.stdout
    assert plain.stdout.startswith("demo  30 nodes, all ready, 181 pods, 0 writes/s")
    told = json.loads(run_cli("fleet", "top", "-o", "json", *at(path)).stdout)
    assert len(told["rows"]) == 30 * len(told["columns"])
    assert told["writes"]["total"] == 0


def test_without_a_fleet_it_says_how_to_start_one(path: str) -> None:
    told = run_cli("fleet", "top", *at(path))
    assert told.returncode == 1
    assert "hami-mock fleet up FILE" in told.stderr
