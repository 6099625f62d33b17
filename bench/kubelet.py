"""The kubelet's side, on grpcio's C core: it takes raw bytes and doesn't look into lists."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

# A list may be larger than what grpcio takes by default.
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Client:
    """A connection to one device plugin."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=_OPTIONS)

    def connect(self) -> None:
        """Connect now, so that no connecting falls into what is measured."""
        grpc.channel_ready_future(self._channel).result(timeout=30)

    def watch(self) -> Any:
        """Open the list; iterate over the answer to get its messages as bytes."""
        return self._channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")(b"")

    def allocate(self, request: bytes) -> bytes:
        """Allocate devices."""
        answer: bytes = self._channel.unary_unary("/v1beta1.DevicePlugin/Allocate")(request)
        return answer

    def close(self) -> None:
        """End all streams."""
        self._channel.close()


class Kubelet:
    """Takes registrations and opens the lists; knows when each first list was there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clients: list[Client] = []
        self._first_lists: list[float] = []
        self._news = threading.Condition()

    def wait_for_lists(self, count: int, timeout: float = 60) -> float:
        """Wait until so many lists were received; return the clock at the last of them."""
        with self._news:
            if not self._news.wait_for(lambda: len(self._first_lists) >= count, timeout):
                raise TimeoutError(f"{len(self._first_lists)} of {count} lists in {timeout} s")
            return self._first_lists[count - 1]

    def register(self, request: bytes, _context: object) -> bytes:
        """Take a registration. Like the real kubelet, open the list beside it."""
        from deviceplugin_pb2 import RegisterRequest  # type: ignore[import-not-found]

        client = Client(self._folder / RegisterRequest.FromString(request).endpoint)
        self._clients.append(client)
        threading.Thread(target=self._watch, args=[client], daemon=True).start()
        return b""

    def close(self) -> None:
        """End all streams."""
        for client in self._clients:
            client.close()

    def _watch(self, client: Client) -> None:
        try:
            for number, _ in enumerate(client.watch()):
                if number == 0:
                    with self._news:
                        self._first_lists.append(time.perf_counter())
                        self._news.notify()
        except (grpc.RpcError, ValueError):
            pass  # the plugin or the bench ended it


@contextmanager
def kubelet(folder: Path) -> Iterator[Kubelet]:
    """Run a kubelet on a folder."""
    taker = Kubelet(folder)
    handler = grpc.method_handlers_generic_handler(
        "v1beta1.Registration", {"Register": grpc.unary_unary_rpc_method_handler(taker.register)}
    )
    # The agent registers all its resources at once.
    server = grpc.server(ThreadPoolExecutor(8), handlers=[handler])
    server.add_insecure_port(f"unix:{folder / 'kubelet.sock'}")
    server.start()
    try:
        yield taker
    finally:
        server.stop(grace=0).wait()
        taker.close()
