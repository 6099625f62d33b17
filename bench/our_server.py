"""Our device plugin for one resource: python -m bench.our_server SOCKET DEVICES."""

import asyncio
import sys
from pathlib import Path

from bench.commands import obey, timed
from bench.node import Setting, setting
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import UNHEALTHY
from hami_mock.node.state import NodeState
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.server import serve
from hami_mock.views.deviceplugin.service import DevicePluginService


async def _main(socket: Path, chosen: Setting) -> None:
    resource = chosen.resource
    state = NodeState(chosen.node)
    service = DevicePluginService(resource, state, ResourceCounters())

    fault = Fault(UNHEALTHY, frozenset({chosen.flipped}))

    def flip() -> None:
        if state.unhealthy:
            state.end_faults(fault)
        else:
            state.begin_faults(fault)

    def build() -> dict[str, float]:
        return {
            "first": timed(resource.encode_list),
            "flip": timed(lambda: resource.encode_list({chosen.flipped})),
        }

    async with serve(service, socket, service.end_streams):
        await obey({"flip": flip, "build": build})


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), setting(int(sys.argv[2]))))
