"""A snapshot of the node as lines for a terminal: cards with bars, the pods on them, events."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from hami_mock.cli.ctl import screens
from hami_mock.kit import moments
from hami_mock.kit.terminal import Style, bar, clip, paint, shorten, table

Data = Mapping[str, Any]

_WIDE = 110
"""From so many columns on there is room for a card's model."""
_CARD_FIXED = 51
"""Columns that a card takes beside its bars, if its name has at most ten letters."""
_MODEL = 18
_LEAST_EVENTS = 4
"""Lines that are left for events, with their title, however many cards and pods there are."""
_PALETTE = (160, 166, 136, 106, 70, 35, 36, 37, 32, 62, 98, 162)
"""Colours of a terminal that has 256, around the wheel; each is seen on black and on white."""


def frame(snapshot: Data, columns: int, lines: int | None = None) -> list[str]:
    """Return the screen; where it has so many lines and no more, it is cut to fit."""
    return [clip(line, columns) for line in _frame(snapshot, columns, lines)]


def _frame(snapshot: Data, columns: int, lines: int | None) -> list[str]:
    head = [_head(snapshot, columns), *_notes(snapshot, columns), ""]
    cards, pods = [*_cards(snapshot, columns)], [*_pods(snapshot, columns)]
    if lines is None:
        events = [*_events(snapshot, columns)]
        return [*head, *cards, "", *pods, "", *events]
    room = max(lines - len(head) - _LEAST_EVENTS - 2, 2)
    # Cards come first; pods get what they leave, but not less than a few lines.
    cards = _cut(cards, max(room - min(len(pods), 4), 2))
    pods = _cut(pods, max(room - len(cards), 2))
    above = [*head, *cards, "", *pods, ""]
    events = [*_events(snapshot, columns)][: max(lines - len(above), 0)]
    return [*above, *events][:lines]


def _cut(lines: list[str], most: int) -> list[str]:
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], paint(f"… and {len(lines) - most + 1} lines more", Style.DIM)]


def _head(snapshot: Data, columns: int) -> str:
    cards = snapshot["cards"].values()
    healthy = sum(card["health"] == "healthy" for card in cards)
    name, ready = snapshot["node"], "ready" if snapshot["ready"] else "not ready"
    power = sum(card["power"] or 0 for card in cards)
    pods = {(u["namespace"], u["pod"]) for card in cards for u in card["containers"].values()}
    words = [
        f"{healthy} of {len(cards)} cards healthy",
        *([f"{len(pods)} pod{'s' if len(pods) != 1 else ''}"] if snapshot["holders_known"] else []),
        *([f"{power:.0f} W"] if power else []),
    ]
    clock = moments.show(snapshot["time"])[-8:]
    # The name is what may be long.
    rest = f"  {ready}  {', '.join(words)}  "
    name = shorten(name, max(columns - len(rest) - len(clock), 6))
    space = " " * max(columns - len(name) - len(rest) - len(clock), 0)
    style = Style.GREEN if snapshot["ready"] else Style.YELLOW
    return f"{paint(name, Style.BOLD)}{rest.replace(ready, paint(ready, style), 1)}{space}{clock}"


def _notes(snapshot: Data, columns: int) -> Iterator[str]:
    for problem in snapshot["problems"]:
        yield paint(shorten(problem, columns), Style.RED)
    if snapshot["scenario"]:
        yield from (shorten(line, columns) for line in screens.scenario(snapshot["scenario"]))


def _cards(snapshot: Data, columns: int) -> Iterator[str]:
    cards = snapshot["cards"]
    if not cards:
        yield "This node has no cards."
        return
    is_wide = columns >= _WIDE
    longest = max(10, min(max(map(len, cards)), 24))
    fixed = _CARD_FIXED + longest - 10 + (_MODEL + 2) * is_wide
    each = min(max((columns - fixed) // 2, 4), 40)
    model = f"{'MODEL':<{_MODEL}}  " if is_wide else ""
    title = f"{'CARD':<{longest}}  {model}{'COMPUTE':<{each + 5}}  {'MEMORY GiB':<{each + 13}}"
    yield paint(f"{title}  TEMP   POWER W".rstrip(), Style.BOLD)
    for name, card in cards.items():
        text = shorten(name, longest).ljust(longest)
        kind = f"{shorten(card['model'], _MODEL):<{_MODEL}}  " if is_wide else ""
        yield f"{paint(text, _style(card))}  {kind}{_numbers(card, each)}".rstrip()
        if card["reasons"]:
            yield paint(shorten(f"  {'; '.join(card['reasons'])}", columns), _style(card))


def _style(card: Data) -> Style:
    if card["health"] != "healthy":
        return Style.RED
    return Style.YELLOW if card["degraded"] else Style.GREEN


def _numbers(card: Data, each: int) -> str:
    used, memory = card["memory_used"], card["memory"]
    amount = f"{used / 1024:.1f}/{memory / 1024:.1f}"
    temperature = "-" if card["temperature"] is None else f"{card['temperature']:.0f}°C"
    power = "-" if card["power"] is None else f"{card['power']:.0f}/{card['power_limit']:.0f}"
    return (
        f"{_bar(card['busy'] / 100, each)} {card['busy']:>3.0f}%  "
        f"{_bar(used / memory if memory else 0, each)} {amount:>12}  {temperature:>5}  {power:>8}"
    )


def _bar(share: float, columns: int) -> str:
    style = Style.RED if share >= 0.9 else Style.YELLOW if share >= 0.7 else Style.GREEN
    return paint(bar(share, columns), style)


def _pods(snapshot: Data, columns: int) -> Iterator[str]:
    if not snapshot["holders_known"]:
        yield "It isn't known who holds what: the kubelet can't be asked."
        return
    rows = [
        (
            # Held together, or the name would go to a line of its own.
            f"{coloured('■', usage['hue'])}\xa0{usage['namespace']}/{usage['pod']}",
            usage["container"],
            " ".join((card, *usage["profiles"])),
            f"{usage['busy']}%",
            f"{usage['memory']}/{usage['memory_limit']}",
        )
        for card, shown in snapshot["cards"].items()
        for usage in shown["containers"].values()
    ]
    if not rows:
        yield "No pod holds a device."
        return
    header = ("  POD", "CONTAINER", "CARD", "COMPUTE", "MEMORY MiB")
    yield from (line.replace("\xa0", " ") for line in table(header, rows, "   rr", columns))


def coloured(text: str, hue: int) -> str:
    """Return a text in a pod's colour, as near as a terminal comes to it."""
    return paint(text, f"38;5;{_PALETTE[hue * len(_PALETTE) // 360]}")


def _events(snapshot: Data, columns: int) -> Iterator[str]:
    events: Sequence[Data] = [*snapshot["events"].values()][::-1]
    if not events:
        yield "Nothing has happened yet."
        return
    yield paint("EVENTS", Style.BOLD)
    yield from chain.from_iterable(_event(event, columns) for event in events)


def _event(event: Data, columns: int) -> Iterator[str]:
    head = f"{moments.show(event['time'])[-8:]}  "
    subject = event["subject"] and f"{event['subject']}: "
    text = f"{event['kind']}  {subject}{event['message']}"
    line = text[: columns - len(head)]
    if len(line) < len(text):
        line = f"{line[:-1]}…"
    kind = event["kind"]
    painted = paint(kind, Style.YELLOW) if event["warning"] else kind
    yield head + (painted + line[len(kind) :] if line.startswith(kind) else line)
