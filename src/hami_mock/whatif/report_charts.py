"""Which charts a report has, and what is in each. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hami_mock.kit.plotting import Point
from hami_mock.whatif.charts import Axis, Bar, Series, bar_chart, heat_map, line_chart
from hami_mock.whatif.report_text import gib, percent

Data = Mapping[str, Any]

_FLEET = "% of the fleet"
_MOST_ASKED = 150.0
"""Percent of the fleet up to which what was asked for is drawn: the rest would flatten all else."""
_MOST_LINES = 4
_TAKEN = {"memory": "card memory", "cores": "card cores", "mig": "MIG slices", "cpu": "CPU"}
_STRANDED = {
    "memory_without_cores": ("memory without cores", "memory"),
    "memory_without_slots": ("memory without slots", "memory"),
    "cores_without_memory": ("cores without memory", "cores"),
    "memory_without_node": ("memory on full nodes", "memory"),
    "cards_without_node": ("cards on full nodes", "cards"),
}
_TIMES = ((2 * 86400, 86400, "days"), (2 * 3600, 3600, "hours"), (120, 60, "minutes"))
BARS = {
    "memory": "card memory",
    "cores": "card cores",
    "slots": "slots",
    "mig": "MIG slices",
    "cpu": "CPU",
    "ram": "memory of nodes",
    "pods": "pods",
}


def allocated(report: Data) -> str:
    """Draw how much is taken, and was asked for, after each pod."""
    total, timeline = report["total"], report["timeline"]
    used = [key for key in _TAKEN if total[key]["there"]]
    series = [
        Series(
            f"{_TAKEN[key]}, allocated",
            _arriving((each["arrived"], _of(each["taken"][key], total[key])) for each in timeline),
            style,
        )
        for style, key in enumerate(used)
    ]
    asked: list[tuple[float, float]] = []
    if used:
        key = used[0]
        asked = _arriving(
            (each["arrived"], _of(each["asked"][key], total[key])) for each in timeline
        )
        series.append(Series(f"{_TAKEN[key]}, asked for", asked, 4))
    highest = max((y for _, y in asked), default=0.0)
    most = 100.0 if highest <= 100 else min(max(highest, 100.0), _MOST_ASKED)
    title = "Allocated against arrived"
    return line_chart(title, Axis("pods arrived", is_whole=True), Axis(_FLEET, most=most), series)


def _arriving(points: Iterable[Point]) -> list[Point]:
    """Return the points at which pods arrived; after the last one others only end."""
    found: dict[float, float] = {}
    for arrived, value in points:
        found.setdefault(arrived, value)
    return [*found.items()]


def fragmented(report: Data) -> str:
    """Draw how much of the free card memory the pods of the workload can't use."""
    axis, place, size = _across(report)
    at = {"arrived": 0, "time": 2}[place]
    points = [(point[at] / size, 100 * point[1]) for point in report["fragmentation"]]
    y = Axis("% of the free card memory", most=100.0)
    return line_chart("Fragmentation over time", axis, y, [Series("fragmented", points)])


def _across(report: Data) -> tuple[Axis, str, float]:
    """Return an axis of time, or of pods where there are no times, its key and its unit."""
    seconds = max((each["time"] for each in report["timeline"]), default=0.0)
    if not seconds:
        return Axis("pods arrived", is_whole=True), "arrived", 1
    units = (unit for unit in _TIMES if seconds >= unit[0])
    _, size, unit = next(units, (0, 1, "seconds"))
    return Axis(f"{unit} since the first pod"), "time", size


def stranded(report: Data) -> str:
    """Draw what is free and of no use, over time, or from pod to pod where there are no times."""
    total, timeline = report["total"], report["timeline"]
    axis, key, size = _across(report)
    lines: list[Series] = []
    for part, (name, whole) in _STRANDED.items():
        there = total["cards"] if whole == "cards" else total[whole]["there"]
        points = [
            (each[key] / size, 100 * each["stranded"][part] / there if there else 0.0)
            for each in timeline
        ]
        if not lines or any(y for _, y in points):
            lines.append(Series(name, points, len(lines)))
    highest = max((y for line in lines for _, y in line.points), default=0.0)
    # Less than a percent is drawn as little as it is.
    y = Axis(_FLEET, most=max(1.0, highest))
    return line_chart("Stranded capacity over time", axis, y, lines)


def heat(report: Data) -> str:
    """Draw how many cards have how much left of memory and of cores."""
    steps, cells = report["heat"]["steps"], report["heat"]["cards"]
    title = "Cards by free memory and free cores"
    return heat_map(title, "free cores, %", "free memory, %", steps, cells)


def reasons(report: Data) -> str:
    """Draw for each reason how many pods it keeps out."""
    refused = report["answer"]["refused"]
    bars = [
        Bar(
            each["lacks"],
            each["pods"] / refused,
            f"{each['pods']:,} ({percent(each['pods'] / refused)})",
            about=f"{each['reason']}: {each['meaning'] or each['lacks']}: {each['pods']:,} pods",
        )
        for each in report["reasons"]
    ]
    return bar_chart("Refused pods by what they lack", bars)


def purchases(report: Data) -> str:
    """Draw how many pods fit with more nodes of a pool: of the four that help most."""
    able = [each for each in report["purchases"] if each["nodes"]]
    best = sorted(able, key=lambda each: (-each["fit"], each["nodes"]))[:_MOST_LINES]
    wanted, had = best[0]["wanted"], report["answer"]["fit"]
    series = [
        Series(each["pool"], each["curve"], style, has_dots=True) for style, each in enumerate(best)
    ]
    farthest = max(each["nodes"] for each in best)
    series.append(Series("wanted", [(0, wanted), (farthest, wanted)], 4))
    least = float(had) if had > wanted / 2 else 0.0
    return line_chart(
        "Pods that fit against nodes bought",
        Axis("more nodes", is_whole=True),
        Axis("pods that fit", least=least, is_whole=True),
        series,
    )


def policies(report: Data) -> str:
    """Draw the allocated memory of each policy after each pod."""
    series = [
        Series(
            each["policy"],
            _arriving((x, 100 * (y or 0.0)) for x, y in each["memory_over_time"]),
            style,
        )
        for style, each in enumerate(report["policies"][:_MOST_LINES])
    ]
    title = "Allocated card memory, by policy"
    x = Axis("pods arrived", is_whole=True)
    return line_chart(title, x, Axis("% of the fleet's card memory", most=100.0), series)


def pool(report: Data) -> str:
    """Draw how full a pool is; hatched is what is free and fits none of the pods."""
    return bar_chart(f"Pool {report['pool']}", [*_bars(report)])


def _bars(pool: Data) -> Iterator[Bar]:
    for key, label in BARS.items():
        part = pool[key]
        if there := part["there"]:
            useless = part.get("useless", 0)
            about = f"{label}: {amount(key, part['taken'])} of {amount(key, there)}"
            about += f", {amount(key, useless)} free and useless" if useless else ""
            yield Bar(label, part["taken"] / there, percent(part["share"]), useless / there, about)


def amount(key: str, value: float) -> str:
    """Return an amount of a resource in a unit that people use."""
    match key:
        case "memory":
            return gib(value)
        case "ram":
            return gib(value / 2**20)
        case "cpu":
            return f"{value / 1000:,.4g} CPU"
        case "mig":
            return f"{value:,} slices"
    return f"{value:,} {key}"


def _of(amount: float, part: Data) -> float:
    there = part["there"]
    return 100 * amount / there if there else 0.0


def shown_pools(pools: Sequence[Data], most: int) -> list[Data]:
    """Return the pools with the most nodes, in their order in the file."""
    chosen = {each["pool"] for each in sorted(pools, key=lambda each: -each["nodes"])[:most]}
    return [each for each in pools if each["pool"] in chosen]
