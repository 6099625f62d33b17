"""A node whose exporters are served on loopback ports, as an agent serves them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from anyio.from_thread import BlockingPortal, start_blocking_portal

from hami_mock.agent import Agent
from hami_mock.faults.actions import Action, perform
from hami_mock.node.readings import Reading
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.exporters.view import ExporterView, exporter_views
from hami_mock.views.http.metrics import NodeCollector
from hami_mock.views.http.scrapes import CONTENT_TYPE
from hami_mock.views.http.server import Answer
from hami_mock.views.http.view import HttpView, agent_routes
from tests.makers import AMD, ASCEND, CAMBRICON, HYGON, ILUVATAR, METAX
from tests.prometheus.expressions import SCHEDULER
from tests.prometheus.server import NODE
from tests.unit.builders import cards
from tests.unit.views.exporters.rig import ShownState

TRAINER, SIDE = ("team", "trainer", "main"), ("team", "trainer", "side")
WHOLE = ("team", "single", "main")
JOBS = {
    "http": "hami-mock",
    "dcgm": "hami-mock-dcgm",
    "hami monitor": "hami-mock-monitor",
    "vendor metrics": "hami-mock-vendors",
    "scheduler": "hami-scheduler",
}


GONE = "hami-mock-gone"
"""The job of an agent that doesn't answer."""


@dataclass
class ShownNode:
    state: ShownState
    targets: dict[str, str]
    portal: BlockingPortal

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the thread that answers scrapes."""
        return self.portal.call(function, *arguments)

    def act(self, verb: str, uuid: str, **parameters: Any) -> None:
        self.call(perform, Action(verb, (uuid,), parameters), self.state)

    def read(self, index: int, **values: Any) -> None:
        """Let the card with this index show something else."""
        uuid = self.state.node.cards[index].uuid
        reading: Reading = replace(self.state.readings[uuid], **values)
        self.call(self.state.readings.__setitem__, uuid, reading)


def _state() -> ShownState:
    others = (CAMBRICON, ASCEND, HYGON, METAX, ILUVATAR, AMD)
    state = ShownState([*cards(3), *(card for vendor in others for card in cards(1, vendor))])
    first, second, *_ = state.node.cards
    state.hold(first, TRAINER, busy=40, memory=2048)
    state.hold(first, SIDE, busy=15, memory=512)
    state.hold(second, WHOLE, busy=55, memory=3000)
    for verb in ("degrade", "recover"):  # so that there are events
        perform(Action(verb, (second.uuid,)), state)
    return state


@contextmanager
def shown_node(folder: Path) -> Iterator[ShownNode]:
    """Serve a node's exporters, and a stand-in for HAMi's scheduler beside them."""
    state = _state()
    listens = ("http", "dcgm", "hami-monitor", "vendor-metrics")
    flags = {f"{name}-listen": "127.0.0.1:0" for name in listens}
    settings = load(
        {
            "node-name": NODE,
            "socket-dir": str(folder),
            "dcgm-extras": "on",
            "nvidia-cards": "3",
            **flags,
        }
    )
    agent = Agent(settings, configured_node(settings, None))
    collector = NodeCollector(
        state, agent.plugins, agent.configuration,
        failures=lambda: {"holders": "no socket"}, failure_counts={"holders": 1, "http": 0},
    )  # fmt: skip
    scheduler = HttpView("127.0.0.1:0", {"/metrics": lambda: _scheduler(state)})
    often = patch("hami_mock.views.exporters.view.SAMPLE_SECONDS", 0.5)
    with often, start_blocking_portal() as portal:
        views: dict[str, HttpView | ExporterView] = {
            "http": HttpView(settings.http_listen, agent_routes(collector)),
            "scheduler": scheduler,
            **dict(portal.call(lambda: [*exporter_views(settings, state)])),
        }
        futures = [portal.start_task(view.run)[0] for view in views.values()]
        targets = {JOBS[name]: view.status()["address"] for name, view in views.items()}
        targets[GONE] = "127.0.0.1:1"
        try:
            yield ShownNode(state, targets, portal)
        finally:
            for future in futures:
                future.cancel()


def _scheduler(state: ShownState) -> Answer:
    """HAMi's scheduler knows the same cards by the same UUIDs, and sits on another node."""
    lines = [
        f'{name}{{node="{NODE}",device_uuid="{card.uuid}",device_index="{card.index}"}} 7'
        for name in SCHEDULER
        for card in state.node.cards[:3]
    ]
    return Answer(("\n".join(lines) + "\n").encode(), content_type=CONTENT_TYPE)
