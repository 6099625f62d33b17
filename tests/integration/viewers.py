"""A node with a page, and viewers of its events, over real sockets."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

import anyio
from anyio.abc import TaskStatus

from hami_mock.node.event_kinds import Kind
from hami_mock.sources.late_load import LateLoad
from tests.integration.agents import AgentThread, agent_thread
from tests.server_sent_events import messages

ASK = b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"


class Viewer:
    """Somebody who looks, message by message."""

    def __init__(self, address: tuple[str, int], timeout: float = 10, buffer: int = 0) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(timeout)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect(address)
        self.socket.sendall(ASK)
        self._file = self.socket.makefile("rb")

    def head(self) -> list[str]:
        """The status and the headers."""
        return [*iter(lambda: self._file.readline().decode().strip(), "")]

    def messages(self) -> Iterator[tuple[str, Any]]:
        """The events by name, until the server ends."""
        return messages(self._file)

    def next(self) -> tuple[str, Any]:
        return next(self.messages())

    def wait_for(self, *keys: str) -> Any:
        """The next change that has something under the keys."""
        for name, data in self.messages():
            found: Any = data if name == "change" else {}
            for key in keys:
                found = found.get(key) or {}
            if found:
                return found
        raise AssertionError(f"the stream ended without {keys}")

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()


async def nobody_asked() -> None:
    """Stand in for asking the kubelet, who knows nothing of what is invented."""


class ShownNode:
    """An agent with a page, and where it is."""

    def __init__(self, agent: AgentThread) -> None:
        self.agent = agent
        self.state = agent.agent.state
        views = {view.name: view for view in agent.agent.views}
        self.feed = views["page"]
        address = views["http"].status()["address"]
        host, _, port = address.rpartition(":")
        self.address = host, int(port)
        self.url = f"http://{address}"

    @property
    def viewers(self) -> int:
        return int(self.agent.call(self.feed.status)["viewers"])

    def wait_for_viewers(self, number: int) -> None:
        for _ in range(500):
            if self.viewers == number:
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"{self.viewers} viewers, not {number}")

    def event(self, message: str) -> None:
        self.agent.call(self.state.events.add, Kind.XID, "nvidia/0", message)


async def _no_load(
    _load: LateLoad, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    task_status.started()
    await anyio.sleep_forever()


@contextmanager
def shown_node(folder: Path, **flags: str) -> Iterator[ShownNode]:
    """Run an agent whose tests invent what its cards show: its own readings would replace that."""
    listen = {"http_listen": "127.0.0.1:0"} | flags
    with patch.object(LateLoad, "run", _no_load), agent_thread(folder, **listen) as agent:
        yield ShownNode(agent)
