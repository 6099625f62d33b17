"""Two hours on a node with four cards: who comes and goes, what breaks, and what is scraped.

The agent's own model and exporters do it all; only the clock is ours, so it takes a second, and the
same comes out every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hami_mock.faults.actions import Action, perform
from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings, load
from hami_mock.sources.configured import configured_node
from hami_mock.sources.load import LoadSource
from hami_mock.sources.load_plan import ANNOTATION
from hami_mock.views.exporters.hami_monitor import LastWork
from hami_mock.views.exporters.pages import DcgmPage, MonitorPage

MINUTE = 60
BEGIN = 1_767_610_800
"""11:00 UTC on a Monday in January 2026. Fixed, so that the pictures change only with the model."""
SECONDS = 120 * MINUTE
SCRAPE_SECONDS = 15
_SLOT, _MEMORY, _CORES = "nvidia.com/gpu", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
_FLAGS = {
    "node-name": "gpu-node-1",
    "vendors": "nvidia",
    "nvidia-cards": "4",
    "nvidia-model": "H100-SXM5-80GB",
    # A second of the agent's is then one scrape, as with an agent that somebody watches live.
    "time-factor": str(SCRAPE_SECONDS),
    "nvidia-memory-factor": "auto",
    "seed": "7",
}


class Visit(NamedTuple):
    """A pod that holds a card for a while: minutes, a load, and percent of the card (0: all)."""

    pod: str
    card: int
    load: str
    begin: int = 0
    end: int = 999
    part: int = 0

    @property
    def container(self) -> Container:
        return "team", self.pod, "main"


VISITS = (
    Visit("train", 0, "training:90-98:30m:part=2m"),
    Visit("serve", 1, "inference:5-60:2h", part=60),
    Visit("notebook", 1, "burst:0-40:25m:part=6m:memory=30-60", begin=10, end=105, part=40),
    Visit("hot", 2, "85:memory=60"),
    Visit("batch", 3, "ramp:0-100:30m:memory=80", begin=20, end=90),
)
HOT_CARD = 2
TROUBLE, REPAIR = 40, 80
"""The minutes in which the third card's fan stops, and works again."""


def lines() -> Iterator[str]:
    """Yield all scrapes of the two hours as OpenMetrics with times."""
    clock = _Clock()
    settings = load(_FLAGS)
    state = NodeState(configured_node(settings, None))
    source = LoadSource(state, _always(settings), clock.now)
    work = LastWork(clock.now)
    pages = DcgmPage(state, settings.driver_version), MonitorPage(state, work)
    for passed in range(0, SECONDS + 1, SCRAPE_SECONDS):
        clock.seconds = BEGIN + passed
        source.advance(1.0 if passed else 0.0)
        _play(state, passed)
        source.advance(0.0)  # who has just come is there
        work.note(state.loads)
        for page in pages:
            yield from _timed(page.render().decode(), clock.seconds)
    yield "# EOF"


class _Clock:
    seconds = BEGIN

    def now(self) -> float:
        return self.seconds


def _always(settings: Settings) -> Callable[[], Settings]:
    return lambda: settings


def _timed(text: str, seconds: int) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("#"):
            yield f"{line} {seconds}"


def _play(state: NodeState, passed: int) -> None:
    """Let happen what happens at this time."""
    minute, rest = divmod(passed, MINUTE)
    if rest:
        return
    if minute in {edge for visit in VISITS for edge in (visit.begin, visit.end)}:
        present = [visit for visit in VISITS if visit.begin <= minute < visit.end]
        state.pods = {visit.container[:2]: _pod(visit) for visit in present}
        state.holders.name([_holder(state, visit) for visit in present])
    uuid = state.node.cards[HOT_CARD].uuid
    if minute == TROUBLE:
        perform(Action("degrade", (uuid,), {"reason": "thermal"}), state)
    if minute == REPAIR:
        perform(Action("recover", (uuid,)), state)


def _pod(visit: Visit) -> Pod:
    namespace, name, _ = visit.container
    annotations = {ANNOTATION: visit.load}
    return Pod(namespace, name, uid=name, annotations=annotations, containers=("main",))


def _holder(state: NodeState, visit: Visit) -> Holder:
    """Return what the kubelet says of the pod; those on one card take different devices."""
    before = [other for other in VISITS if other.card == visit.card]
    first = before.index(visit)
    taken = sum(other.part for other in before[:first])
    spans = {_SLOT: (first, 1)}
    if visit.part:
        spans |= {_MEMORY: (taken, visit.part), _CORES: (taken, visit.part)}
    card = state.node.cards[visit.card]
    ids = {name: [*state.resources[name].devices.ids(card)] for name in spans}
    devices = {name: ids[name][at : at + count] for name, (at, count) in spans.items()}
    return Holder(visit.container, devices)
