"""An agent that remembers what setters ask of it."""

import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from hami_mock.views.driver import layout, messages
from hami_mock.views.driver.messages import OPERATIONS, REPLY, REQUEST
from tests.driver.state_file import StateFile, cut


class Agent:
    """Takes requests, remembers them, and answers what it was told to; it makes one instance."""

    def __init__(self, state: StateFile) -> None:
        self.requests: list[dict[str, Any]] = []
        self.peers: list[int] = []
        self.reply: dict[str, Any] = {}
        self.before_reply: Callable[[], object] = lambda: None
        self._state = state
        self.path = (state.folder / messages.SETTER_SOCKET).resolve()
        self.path.parent.mkdir()
        self._folder = os.open(self.path.parent, os.O_PATH)
        self._server = socket.socket(socket.AF_UNIX)
        # A temporary folder's path may be too long for a socket's.
        self._server.bind(f"/proc/self/fd/{self._folder}/{self.path.name}")
        self._server.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()
        os.close(self._folder)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                got = REQUEST.unpack(connection.recv(REQUEST.size, socket.MSG_WAITALL))
                peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                self.peers.append(struct.unpack("3i", peer)[0])
                self.requests.append(got)
                if got["operation"] == OPERATIONS["CREATE_GPU_INSTANCE"]:
                    self._state.set(got["card"], cut(got["card"]))
                self.before_reply()
                connection.sendall(REPLY.pack({"magic": layout.MAGIC, **self.reply}))
