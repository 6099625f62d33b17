"""Answers of the agent as lines for people."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hami_mock.kit import durations, moments
from hami_mock.kit.terminal import Style, paint, table, width, wrap
from hami_mock.kit.text import cut

Data = Mapping[str, Any]
Screen = Callable[[Any], Iterator[str]]

_WIDE = 120
"""From so many columns on, there is room for an event beside its kind."""
_PHASE_STYLES = {"watched": Style.GREEN, "in status": Style.GREEN, "failed": Style.RED}


def summary(result: Data) -> Iterator[str]:
    for line in result["summary"]:
        yield from _hanging(line, 2)


def events(result: list[Data]) -> Iterator[str]:
    is_narrow = (width() or _WIDE) < _WIDE
    for event in result:
        head = f"{event['number']:>5}  {moments.show(event['time'])}  "
        kind = event["kind"] if is_narrow else f"{event['kind']:<22}"
        subject = event["subject"] and f"{event['subject']}: "
        indent = len(head) if is_narrow else len(head) + len(kind) + 2
        first, *others = _hanging(f"{head}{kind}  {subject}{event['message']}", indent)
        if event["warning"]:
            first = f"{head}{paint(kind, Style.YELLOW)}{first[len(head) + len(kind) :]}"
        yield from (first, *others)


def _hanging(text: str, indent: int) -> Sequence[str]:
    """Return the text; where it is too long for the terminal, folded, its other lines indented."""
    columns = width()
    if columns is None or len(text) <= columns:
        return [text]
    first, *others = wrap(text, columns)
    return [first, *(f"{' ' * indent}{line}" for line in wrap(" ".join(others), columns - indent))]


def scenario(result: Data | None) -> Iterator[str]:
    if not result:
        yield "no scenario is running"
        return
    total = result.get("total")
    of = f" of {durations.show(total)}" if total is not None else ""
    how_far = f"{durations.show(round(result['elapsed'], 1))}{of}"
    if result.get("ending"):
        how_far = f"{result['ending']} after {how_far}"
    yield f"scenario {result['name']}: seed {result['seed']}, {how_far}"
    if result.get("next"):
        at = result.get("next_at")
        yield f"next{'' if at is None else f' at {durations.show(at)}'}: {result['next']}"


def status(result: Data) -> Iterator[str]:
    ready = paint("ready", Style.GREEN) if result["ready"] else paint("not ready", Style.YELLOW)
    name = paint(result["node"], Style.BOLD)
    yield f"Node {name}: hami-mock {result['version']}, {ready}"
    for part, reason in result.get("failures", {}).items():
        yield f"{paint('not working', Style.RED, Style.BOLD)}: {part}: {reason}"
    for part, notice in result.get("notices", {}).items():
        if part != "holders":  # the last lines say that
            yield f"{paint('notice', Style.YELLOW)}: {notice}"
    yield from _configuration(result["configuration"])
    if result["scenario"]:
        yield from (line[0].upper() + line[1:] for line in scenario(result["scenario"]))
    cards, drivers = result["cards"], result.get("views", {}).get("dra", {})
    is_dra_alone = bool(drivers) and not result["resources"]
    for part in (
        _cards(cards),
        _readings(cards),
        [] if is_dra_alone else _resources(result["resources"]),
        _dra(drivers),
        _holders(result),
    ):
        if lines := [*part]:
            yield ""
            yield from lines
    for target, load in result.get("load", {}).get("set", {}).items():
        yield from _hanging(f"Load set with ctl: {cut(target)} {cut(load)}", 2)


def _configuration(data: Data) -> Iterator[str]:
    if data["changed"] is not None:
        yield f"Configuration: changed {moments.show(data['changed'])}"
    if data["overrides"]:
        values = " ".join(f"{name}={value}" for name, value in data["overrides"].items())
        yield f"Set with ctl: {values}"
    for line in data["error"] or ():
        yield f"{paint('configuration error', Style.RED, Style.BOLD)}: {line}"


def _cards(cards: list[Data]) -> Iterator[str]:
    if not cards:
        yield "No cards are configured for this node."
        return
    rows = [
        (
            # A real plugin's cards may be called anything.
            *(cut(str(card[key])) for key in ("name", "uuid", "model", "memory")),
            "-" if card["numa"] is None else card["numa"],
            ", ".join(f"{xid} x{times}" for xid, times in card["xids"].items()) or "-",
            _health(card),
        )
        for card in cards
    ]
    header = ("CARD", "UUID", "MODEL", "MEMORY MiB", "NUMA", "XIDS", "HEALTH")
    yield from table(header, rows, "   rRL")


def _health(card: Data) -> str:
    if card["health"] == "healthy":
        style = Style.YELLOW if card["degraded"] else Style.GREEN
        return paint("; ".join(["healthy", *card["reasons"]]), style)
    # Each reason begins with what it makes the card: unhealthy or lost.
    return paint("; ".join(card["reasons"]), Style.RED)


def _readings(cards: list[Data]) -> Iterator[str]:
    rows = [
        (
            card["name"],
            f"{reading['busy']:.0f}",
            reading["memory_used"],
            f"{reading['power']:.0f}",
            f"{reading['temperature']:.0f}",
            reading["sm_clock"],
            ", ".join(each for each in reading["throttles"] if each != "gpu_idle") or "-",
        )
        for card in cards
        if (reading := card.get("reading"))
    ]
    if rows:
        header = ("CARD", "BUSY %", "USED MiB", "POWER W", "TEMP C", "CLOCK MHz", "SLOWED BY")
        yield from table(header, rows, " rrrrr")


def _resources(resources: list[Data]) -> Iterator[str]:
    if not resources:
        yield "No resources are registered."
        return
    keys = ("unit", "count", "healthy", "unhealthy", "lost", "retired")
    rows = [
        (
            resource["name"],
            *(resource[key] for key in keys),
            "?" if resource["held"] is None else resource["held"],
            _state(resource),
        )
        for resource in resources
    ]
    yield from table(("RESOURCE", *map(str.upper, keys), "HELD", "STATE"), rows, " rrrrRRr")


def _dra(drivers: Data) -> Iterator[str]:
    rows = [
        (
            name,
            *(driver[key] for key in ("devices", "slices")),
            len(driver["claims"]),
            driver["claim_errors"],
            paint("registered", Style.GREEN) if not driver["error"] else
            f"{paint('not ready', Style.YELLOW)}: {driver['error']}",
        )
        for name, driver in drivers.items()
    ]  # fmt: skip
    if rows:
        header = ("DRA DRIVER", "DEVICES", "SLICES", "CLAIMS", "ERRORS", "STATE")
        yield from table(header, rows, " rrrr")


def _state(resource: Data) -> str:
    phase = resource["phase"]
    text = paint(phase, _PHASE_STYLES.get(phase, Style.YELLOW))
    waits = resource["why"] if resource.get("waits_to_move") else ""
    text += "".join(f": {why}" for why in (resource["reason"], waits) if why)
    return text + "".join(f"; {paint(fault, Style.YELLOW)}" for fault in resource["faults"])


def _holders(result: Data) -> Iterator[str]:
    if not result["holders_known"]:
        told = result.get("notices", {}).get("holders") or "it isn't known yet who holds what"
        yield from _hanging(f"{told[0].upper()}{told[1:]}", 2)
        return
    rows = [
        (
            card["name"],
            f"{holder['namespace']}/{holder['pod']}" if holder["pod"] else "not known yet",
            holder["container"] or "-",
            f"{holder['load']['busy']} of {holder['cores']} %",
            f"{holder['load']['memory']} of {holder['memory']}",
            ", ".join(f"{count}\xa0{name}" for name, count in holder["devices"].items()),
        )
        for card in result["cards"]
        for holder in card["holders"]
    ]
    if rows:
        # A number and what it counts have been held together.
        header = ("CARD", "POD", "CONTAINER", "BUSY", "USED MiB", "HOLDS")
        lines = table(header, rows, "   rr")
        yield from (line.replace("\xa0", " ") for line in lines)
    else:
        yield "No pod holds a device."
