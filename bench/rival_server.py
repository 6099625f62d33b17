"""The same plugin on grpc.aio and google's protobuf: python -m bench.rival_server SOCKET DEVICES.

Written to be fast: IDs are made beforehand, the message is filled in the quickest way that upb
has, and a flip changes the message that is there instead of making a new one.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import deviceplugin_pb2 as pb  # type: ignore[import-not-found]
import grpc

from bench.commands import obey, timed
from bench.node import Setting, setting


class Rival:
    """The devices of one resource as messages."""

    def __init__(self, chosen: Setting) -> None:
        devices = chosen.resource.devices
        self._ids = [name for card in chosen.resource.cards for name in devices.ids(card)]
        # The flipped card is the first: its devices lead the list.
        self._flipped = devices.counts[chosen.flipped]
        self._word = chosen.unhealthy_word
        self._is_healthy = True
        self._changed = asyncio.Event()

    def message(self) -> Any:
        response = pb.ListAndWatchResponse()
        add = response.devices.add
        for number, name in enumerate(self._ids):
            device = add()
            device.id = name
            device.health = self._health(number)
        return response

    def update(self, response: Any) -> None:
        for number, device in enumerate(response.devices[: self._flipped]):
            device.health = self._health(number)

    def flip(self) -> None:
        self._is_healthy = not self._is_healthy
        self._changed.set()
        self._changed = asyncio.Event()

    def build(self) -> dict[str, float]:
        def make() -> None:
            self._message = self.message()
            self._message.SerializeToString()

        def change() -> None:
            self.update(self._message)
            self._message.SerializeToString()

        first = timed(make)
        self._is_healthy = not self._is_healthy
        flip = timed(change)
        self._is_healthy = not self._is_healthy
        return {"first": first, "flip": flip}

    async def list_and_watch(self, _request: Any, _context: Any) -> AsyncIterator[Any]:
        response = self.message()
        while True:
            changed = self._changed
            yield response
            await changed.wait()
            self.update(response)

    def _health(self, number: int) -> str:
        return "Healthy" if self._is_healthy or number >= self._flipped else self._word


async def _main(socket: Path, chosen: Setting) -> None:
    rival = Rival(chosen)
    method = grpc.unary_stream_rpc_method_handler(
        rival.list_and_watch,
        request_deserializer=pb.Empty.FromString,
        response_serializer=pb.ListAndWatchResponse.SerializeToString,
    )
    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", {"ListAndWatch": method})]
    )
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        await obey({"flip": rival.flip, "build": rival.build})
    finally:
        await server.stop(grace=0)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), setting(int(sys.argv[2]))))
