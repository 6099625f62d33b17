"""First lists and flips, ours against the rival's."""

from collections import defaultdict
from statistics import median

from bench.node import CARDS
from bench.progress import say
from bench.report import Comparison, Figure, Section
from bench.servers import OURS, RIVAL, Server, server
from bench.workspace import Workspace

SIZES = (1024, 16384, 65536, 262144)
BUILD_FIRST, BUILD_FLIP = "build first list", "build after flip"
SENT_FIRST, SENT_FLIP = "first list, end to end", "flip, end to end"
_STEPS = (BUILD_FIRST, BUILD_FLIP, SENT_FIRST, SENT_FLIP)

_Times = dict[str, list[float]]


def list_figures(work: Workspace, repeats: int) -> Section:
    """Compare all sizes."""
    comparisons: dict[tuple[int, str], Comparison] = {}
    for devices in SIZES:
        ours, rival = _times(work, devices, repeats)
        for step in _STEPS:
            comparisons[devices, step] = Comparison(
                devices, step, median(ours[step]) * 1000, median(rival[step]) * 1000
            )
    largest = {step: comparisons[SIZES[-1], step] for step in _STEPS}
    flip, first = largest[BUILD_FLIP], largest[BUILD_FIRST]
    size = f"{SIZES[-1]:,}"
    return Section(
        "Lists: against grpc.aio + protobuf (upb), medians",
        [
            Figure(f"{size}: first list sent, ours / rival", largest[SENT_FIRST].ratio, "x", 1),
            Figure(f"{size}: flip sent, ours / rival", largest[SENT_FLIP].ratio, "x"),
            Figure(f"{size}: our flip / rival's first build", flip.ours / first.rival, "x", 0.1),
            Figure(f"{size}: our flip / our first build", flip.ours / first.ours, "x", 0.1),
        ],
        [*comparisons.values()],
        [
            f"{CARDS} cards, one flips. Both send the same bytes; the rival keeps its message and",
            "changes one card's devices in it, we build each list from nothing.",
        ],
    )


def _times(work: Workspace, devices: int, repeats: int) -> tuple[_Times, _Times]:
    """Measure both servers in turn, so that the machine's noise falls on both."""
    ours: _Times = defaultdict(list)
    rival: _Times = defaultdict(list)
    with server(work, OURS, devices) as we, server(work, RIVAL, devices) as they:
        if we.fetch_lists().second != they.fetch_lists().second:
            raise SystemExit("the rival doesn't do the same: its list differs from ours")
        for number in range(repeats):
            say(f"lists: {devices:,} devices, {number + 1} of {repeats}")
            _measure(we, ours)
            _measure(they, rival)
    return ours, rival


def _measure(running: Server, times: _Times) -> None:
    build = running.ask("build")
    times[BUILD_FIRST].append(build["first"])
    times[BUILD_FLIP].append(build["flip"])
    lists = running.fetch_lists()
    times[SENT_FIRST].append(lists.first_seconds)
    times[SENT_FLIP].append(lists.flip_seconds)
