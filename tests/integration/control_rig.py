"""A control server over a real socket; what it controls is half real."""

import gc
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from hami_mock.cli.ctl.client import ask, main
from hami_mock.control.commands import Commands
from hami_mock.control.protocol import Request
from hami_mock.control.server import ControlServer
from hami_mock.control.status import status
from hami_mock.errors import UsageError
from hami_mock.node.fault import FaultKind
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node

FOLLOW = Request("follow").line
STATUS = Request("status").line


class FakeAgent:
    """A real state; what would change a configuration or play a scenario is only noted."""

    def __init__(self) -> None:
        self.state = NodeState(configured_node(load({"node-name": "node-a"}), None))
        self.noted: list[object] = []
        self.scenario: dict[str, Any] | None = None

    async def status(self) -> dict[str, Any]:
        return {
            **status(self.state, []),
            "configuration": {"error": None, "changed": None, "overrides": {}},
            "scenario": self.scenario,
        }

    async def snapshot(self) -> dict[str, Any]:
        return {"node": "node-a", "cards": {}}

    async def set_options(self, values: Mapping[str, str], reset: bool) -> list[str]:
        if "nvidia-cards" not in values and not reset:
            raise UsageError(["one: wrong", "two: wrong"])
        self.noted.append((values, reset))
        return [f"{name}: {value}" for name, value in values.items()]

    async def set_load(self, targets: Sequence[str], load: str | None) -> list[str]:
        self.noted.append((tuple(targets), load))
        return [f"{target}: {load}" for target in targets] or ["no load was set"]

    async def reload(self) -> list[str]:
        raise RuntimeError("the disk is on fire")

    async def play(self, text: str, name: str, seed: int | None) -> dict[str, Any]:
        self.noted.append((text, name, seed))
        self.scenario = {"name": name, "seed": seed or 1, "elapsed": 0.0, "next": "fail all"}
        return self.scenario

    async def stop_scenario(self) -> dict[str, Any]:
        if self.scenario is None:
            raise UsageError("no scenario is running")
        self.scenario |= {"ending": "stopped", "next": ""}
        return self.scenario


class Served:
    """A control server that runs, and ways to talk to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.agent = FakeAgent()
        self.state = self.agent.state
        self.server = ControlServer(str(path), partial(Commands, self.agent))

    @asynccontextmanager
    async def run(self) -> AsyncIterator["Served"]:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                await tasks.start(self.server.run)
                yield self
                tasks.cancel_scope.cancel()
        # A connection that was left open would warn, and a warning is an error.
        gc.collect()

    async def ctl(self, *words: str) -> None:
        arguments = ["--control-socket", str(self.path), *words]
        assert await anyio.to_thread.run_sync(main, arguments) == 0

    async def ask(self, command: str, **arguments: Any) -> Any:
        request = Request(command, arguments)
        return await anyio.to_thread.run_sync(lambda: next(ask(str(self.path), request)))

    def effects(self) -> dict[str, set[FaultKind]]:
        names = {uuid: card.name for uuid, card in self.state.cards.items()}
        found: dict[str, set[FaultKind]] = {}
        for fault in self.state.faults:
            for target in fault.targets:
                found.setdefault(names.get(target, target), set()).add(fault.kind)
        return found


class Raw:
    """A client that may misbehave."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.setblocking(False)
        self._read = b""

    async def send(self, data: bytes) -> None:
        while data:
            await anyio.wait_writable(self.socket)
            data = data[self.socket.send(data) :]

    async def line(self) -> bytes:
        """Return the next line, or nothing when the other side is gone."""
        while b"\n" not in self._read:
            await anyio.wait_readable(self.socket)
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return b""
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line

    async def answer(self) -> Any:
        return json.loads(await self.line())

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


class Ends:
    """Counts the connections that the server is done with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._one_more = anyio.Event()
        connected = ControlServer._connected

        async def watched(*arguments: Any) -> None:
            await connected(*arguments)
            self.count += 1
            self._one_more.set()
            self._one_more = anyio.Event()

        monkeypatch.setattr(ControlServer, "_connected", watched)

    async def reach(self, count: int) -> None:
        while self.count < count:
            await self._one_more.wait()
