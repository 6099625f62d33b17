"""How programs tell that they are ready: the way they tell systemd, with a datagram."""

import secrets
import select
import socket
import time
from typing import Self

from hami_mock.errors import StartError
from hami_mock.fleet.sandbox.child import Child

READY_SECONDS = 300.0
_LOOK_SECONDS = 0.5
"""A program that ends before it is ready sends nothing: so often we look whether it lives."""


class Readiness:
    """A socket that a program says READY=1 to."""

    def __init__(self) -> None:
        # In no folder, for a path may be too long, and by a name that nobody guesses.
        self._name = f"hami-mock-{secrets.token_hex(16)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{self._name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def environment(self) -> dict[str, str]:
        return {"NOTIFY_SOCKET": f"@{self._name}"}

    def wait(self, child: Child, seconds: float = READY_SECONDS) -> None:
        """Wait for it. Raises StartError if the program ends before, or takes too long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self._socket], [], [], _LOOK_SECONDS)[0]:
                if b"READY=1" in self._socket.recv(4096):
                    return
            else:
                child.check()
        raise StartError(f"{child.name} isn't ready after {seconds:.0f} s; {child.last_words()}")
