"""Everybody wants something of one agent at once: python -m tests.e2e.flood PID SECONDS.

To be run in the network of the agent's pod, but outside of its memory: what is killed then is the
agent's fault. Prints, as JSON, how often each was served.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import grpc

from hami_mock.control.protocol import DEFAULT_SOCKET, WATCH, Request
from hami_mock.kubelet.wire import allocate_request, read_devices

PORT = 9396
IDLE, SLOW, STREAMS, VIEWERS = 300, 100, 40, 40
"""How many connections of each kind; more viewers than the agent lets in."""
UNITS = "gpumem"
_REST = 0.05
_UNLIMITED = [("grpc.max_receive_message_length", -1)]


class Flood:
    """Threads that go on until the time is over; a refusal or a cut is no end for them."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._root = Path(f"/proc/{pid}/root")
        self._end = time.monotonic() + seconds
        self.served: Counter[str] = Counter()

    def run(self) -> None:
        works = (
            *([self._scrape] * 4),
            *([self._large_header] * 4),
            *([self._allocate] * 4),
            lambda: self._hold("idle", IDLE, b""),
            lambda: self._hold("slow", SLOW, b"GET /metrics HTTP/1.1\r\nX-Slow: "),
            self._watch_lists,
            self._view,
        )
        threads = [threading.Thread(target=self._again, args=[work]) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._end

    def _again(self, work: Callable[[], None]) -> None:
        while not self.is_over:
            with suppress(OSError, grpc.RpcError):
                work()
            time.sleep(_REST)

    def _scrape(self) -> None:
        with urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10) as answer:
            if b"hami_mock" in answer.read():
                self.served["scrapes"] += 1

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", PORT), timeout=10)

    def _large_header(self) -> None:
        """Send a header that doesn't end."""
        with self._connect() as connection:
            self.served["large headers"] += 1
            for _ in range(64):
                connection.sendall(b"X-Large: " + b"a" * 65_536 + b"\r\n")

    def _hold(self, name: str, count: int, start: bytes) -> None:
        """Keep so many connections open, and replace those that were cut; feed slow ones."""
        held: list[socket.socket] = []
        try:
            while not self.is_over:
                for _ in range(count - len(held)):
                    held.append(self._connect())
                    held[-1].sendall(start)
                    self.served[name] += 1
                time.sleep(1)
                held = [each for each in held if not _is_cut(each, b"a" if start else b"")]
        finally:
            for connection in held:
                connection.close()

    def _plugin(self) -> str:
        """Return the socket of the resource that has most devices."""
        folder = self._root / "var/lib/kubelet/device-plugins"
        found = [path for path in folder.glob("hami-mock-*.sock") if _is_units(path)]
        if not found:
            raise FileNotFoundError(folder)
        return str(found[0])

    def _allocate(self) -> None:
        """Ask for all units at once, again and again."""
        with grpc.insecure_channel(f"unix:{self._plugin()}", options=_UNLIMITED) as channel:
            stream = channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")(b"")
            ids = [device_id for device_id, _ in read_devices(next(stream))]
            request = allocate_request([ids])
            call = channel.unary_unary("/v1beta1.DevicePlugin/Allocate")
            while not self.is_over:
                call(request, timeout=30)
                self.served["large Allocates"] += 1
                time.sleep(_REST)

    def _watch_lists(self) -> None:
        """Open many lists on connections of their own, and read only the first of each."""
        # Without this, grpcio would put all of them on one connection.
        options = [*_UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]
        channels = []
        try:
            for _ in range(STREAMS):
                channels.append(grpc.insecure_channel(f"unix:{self._plugin()}", options=options))
                next(channels[-1].unary_stream("/v1beta1.DevicePlugin/ListAndWatch")(b""))
                self.served["lists"] += 1
            time.sleep(5)
        finally:
            for channel in channels:
                channel.close()

    def _view(self) -> None:
        """Be many viewers of `ctl status --watch`, half of which don't read."""
        path = str(self._root / DEFAULT_SOCKET.lstrip("/"))
        viewers = []
        try:
            for number in range(VIEWERS):
                viewer = socket.socket(socket.AF_UNIX)
                viewers.append(viewer)
                viewer.settimeout(10)
                viewer.connect(path)
                viewer.sendall(Request(WATCH).line)
                # The agent lets in only so many: the others are told so.
                if number % 2 and viewer.recv(65_536).startswith(b'{"result"'):
                    self.served["views"] += 1
            time.sleep(5)
        finally:
            for viewer in viewers:
                viewer.close()


def _is_units(path: Path) -> bool:
    return UNITS in path.name and f"{UNITS}-percentage" not in path.name


def _is_cut(connection: socket.socket, more: bytes) -> bool:
    """Send a little more, and tell whether the other side is gone; then close this one too."""
    connection.setblocking(False)
    try:
        connection.sendall(more)
        is_cut = connection.recv(65_536, socket.MSG_PEEK) == b""
    except BlockingIOError:
        is_cut = False
    except OSError:
        is_cut = True
    if is_cut:
        connection.close()
    return is_cut


if __name__ == "__main__":
    flood = Flood(int(sys.argv[1]), float(sys.argv[2]))
    flood.run()
    print(json.dumps(flood.served))
