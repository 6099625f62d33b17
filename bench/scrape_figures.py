"""What a scrape of the exporters costs, by cards and containers."""

import time
from collections.abc import Callable
from statistics import median

from bench.progress import say
from bench.report import Figure, Section
from hami_mock.views.exporters.hami_monitor import LastWork
from hami_mock.views.exporters.pages import DcgmPage, MonitorPage
from tests.unit.views.exporters.rig import ShownState, crowded

SIZES = ((1, 1), (8, 10), (16, 10), (16, 100))
"""Cards, and containers on each."""
_MOST_MS = 20
_DRIVER = "580.95.05"


def scrape_figures(repeats: int) -> Section:
    """Measure dcgm-exporter's and HAMi's metrics together, then dcgm-exporter's sharing mode."""
    figures = []
    for cards, containers in SIZES:
        say(f"scrapes: {cards} cards, {containers} containers on each")
        state = crowded(cards, containers)
        size = f"{cards} x {containers}"
        first, later, length = _cost(_both(state), repeats)
        changed = _cost_of_changes(state, repeats)
        limit = _MOST_MS if (cards, containers) == SIZES[-1] else None
        figures.append(Figure(f"{size}: dcgm + HAMi, a scrape", later, "ms CPU", limit))
        figures.append(Figure(f"{size}: after a pod came and one went", changed, "ms CPU", limit))
        figures.append(Figure(f"{size}: the first scrape", first, "ms CPU"))
        figures.append(Figure(f"{size}: the text", length / 1024, "KiB"))
    shared = DcgmPage(state, _DRIVER, shares=True)
    _, later, length = _cost(lambda: (shared.render(),), repeats)
    figures.append(Figure(f"{size}: dcgm with --dcgm-sharing, a scrape", later, "ms CPU"))
    figures.append(Figure(f"{size}: its text", length / 1024, "KiB"))
    return Section(
        "Scrapes: cards x containers on each, medians",
        figures,
        notes=["Without HTTP, and with readings that don't change meanwhile."],
    )


def _both(state: ShownState) -> Callable[[], tuple[bytes, ...]]:
    work = LastWork()
    work.note(state.loads)
    dcgm, monitor = DcgmPage(state, _DRIVER), MonitorPage(state, work)
    return lambda: (dcgm.render(), monitor.render())


def _cost(render: Callable[[], tuple[bytes, ...]], repeats: int) -> tuple[float, float, int]:
    """Return the milliseconds of the first scrape and of later ones, and the bytes of one."""
    times = []
    length = 0
    for _ in range(repeats + 1):
        began = time.process_time()
        length = sum(map(len, render()))
        times.append((time.process_time() - began) * 1000)
    return times[0], median(times[1:]), length


def _cost_of_changes(state: ShownState, repeats: int) -> float:
    """Return the milliseconds of a scrape before which a pod has taken another one's place."""
    render, times = _both(state), []
    render()
    for number in range(repeats):
        card = state.node.cards[number % len(state.node.cards)]
        gone = state.held[card.uuid].pop(0)
        del state.loads[card.uuid, gone.container]
        state.hold(card, ("team", f"new-{number}", "main"))
        began = time.process_time()
        render()
        times.append((time.process_time() - began) * 1000)
    return median(times)
