"""How long the agent's event loop stands still while it does its largest pieces of work."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from statistics import median

from bench.kubelet import Client
from bench.node import setting
from bench.progress import say
from bench.report import Figure, Section
from bench.servers import OURS, RIVAL, Server, server
from bench.workspace import Workspace

_DEVICES = 262144
# A container that wants all of an 80 GiB card.
_ALLOCATED = 81920
_TARGET_MS = 50


@dataclass
class _Stalls:
    """The longest stall of each piece of work, in milliseconds."""

    wall: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    def add(self, stall: dict[str, float]) -> None:
        self.wall.append(stall["wall"] * 1000)
        self.own.append(stall["own"] * 1000)


def stall_figures(work: Workspace, repeats: int) -> Section:
    """Measure the longest stall during each piece of work."""
    stalls: dict[str, _Stalls] = defaultdict(_Stalls)
    answer_ms: list[float] = []
    with server(work, OURS, _DEVICES) as we, server(work, RIVAL, _DEVICES) as they:
        client = Client(we.socket)
        request = _allocate_request()

        def allocate() -> None:
            began = time.perf_counter()
            client.allocate(request)
            answer_ms.append((time.perf_counter() - began) * 1000)

        works: dict[str, tuple[Server, Callable[[], object]]] = {
            "idle": (we, lambda: time.sleep(0.1)),
            "lists": (we, we.fetch_lists),
            "rival": (they, they.fetch_lists),
            "allocate": (we, allocate),
        }
        for number in range(repeats):
            say(f"stalls: {number + 1} of {repeats}")
            for name, (running, job) in works.items():
                stalls[name].add(_stall(running, job))
        client.close()
    return Section(
        "Stalls: the longest time that the event loop stands still",
        [
            Figure("nothing to do: the machine's noise, median", median(stalls["idle"].wall), "ms"),
            *_all(f"lists of {_DEVICES:,} built and sent", stalls["lists"]),
            *_all(f"Allocate of {_ALLOCATED:,} units", stalls["allocate"]),
            Figure(f"Allocate of {_ALLOCATED:,} units, answer", median(answer_ms), "ms"),
            Figure("rival: the same lists, median", median(stalls["rival"].wall), "ms"),
        ],
        notes=[f"Each the longest of one piece of work (three lists); {repeats} pieces."],
    )


def _all(name: str, stalls: _Stalls) -> list[Figure]:
    return [
        Figure(f"{name}, median", median(stalls.wall), "ms", _TARGET_MS),
        Figure(f"{name}, worst", max(stalls.wall), "ms", _TARGET_MS),
        Figure(f"{name}, worst in own processor time", max(stalls.own), "ms", _TARGET_MS),
    ]


def _stall(running: Server, job: Callable[[], object]) -> dict[str, float]:
    running.ask("start-ticker")
    job()
    # The ticker must get its turn after the work, or it couldn't tell how long that was.
    time.sleep(0.01)
    stall: dict[str, float] = running.ask("stop-ticker")
    return stall


def _allocate_request() -> bytes:
    from deviceplugin_pb2 import (  # type: ignore[import-not-found]
        AllocateRequest,
        ContainerAllocateRequest,
    )

    resource = setting(_DEVICES).resource
    ids = (name for card in resource.cards for name in resource.devices.ids(card))
    container = ContainerAllocateRequest(device_ids=islice(ids, _ALLOCATED))
    request: bytes = AllocateRequest(container_requests=[container]).SerializeToString()
    return request
