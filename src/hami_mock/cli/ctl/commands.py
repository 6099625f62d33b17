"""The commands of `hami-mock ctl`, as data: what each takes, asks the agent, and shows."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hami_mock.cli.ctl import screens
from hami_mock.cli.parser import Parsed, reads
from hami_mock.control.protocol import FOLLOW, MOST_REQUEST_BYTES, WATCH, Request
from hami_mock.errors import UsageError
from hami_mock.faults.targets import ALL
from hami_mock.kit import moments
from hami_mock.kit.files import read_text
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.values import SEED, SPAN, Kind
from hami_mock.node.fault import FaultKind, On, Verb
from hami_mock.node.fault_kinds import VERBS, XID
from hami_mock.vendors import VENDORS

Argument = tuple[str, str, Mapping[str, Any]]
"""A flag or a word: its names, its help, and what else argparse wants to know."""

_TARGETS = {
    On.CARDS: ("CARD", "cards: nvidia/0, a UUID, a glob of either, a vendor, or all"),
    On.RESOURCES: ("RESOURCE", "resources: nvidia.com/gpu, a glob, a vendor, or all"),
    On.BOTH: ("TARGET", "cards or resources, by name, UUID, glob or vendor"),
}
_WITH_XIDS = [vendor.prefix for vendor in VENDORS if vendor.has_xids]


@dataclass(frozen=True)
class CtlCommand:
    """One command. `pick` takes from the answer what is shown."""

    help: str
    examples: tuple[str, ...]
    request: Callable[[Parsed], Request]
    arguments: tuple[Argument, ...] = ()
    screen: screens.Screen = screens.summary
    pick: Callable[[Any], Any] = lambda result: result


def _argument(names: str, text: str, **how: Any) -> Argument:
    return names, text, how


def _switch(names: str, text: str) -> Argument:
    return _argument(names, text, action="store_true")


def _verb_command(verb: Verb) -> CtlCommand:
    arguments = [
        _argument(f"{'' if each.is_required else '--'}{each.name}", each.help, **reads(each.kind))
        for each in verb.parameters
    ]
    arguments.append(_targets(verb))
    if isinstance(verb, FaultKind):
        arguments.append(_argument("--for", "end the fault after this time [never]", **reads(SPAN)))
    fields = ("targets", "for", *(parameter.name for parameter in verb.parameters))

    def request(parsed: Parsed) -> Request:
        given = {field: getattr(parsed, field, None) for field in fields}
        if not given["targets"]:
            if given.get("xid") is None:
                raise UsageError(f"{verb.verb}: name the targets: {_TARGETS[verb.on][1]}")
            given["targets"] = _WITH_XIDS
        return Request(verb.verb, {key: value for key, value in given.items() if value is not None})

    return CtlCommand(verb.help, verb.examples, request, tuple(arguments))


def _targets(verb: Verb) -> Argument:
    metavar, words = _TARGETS[verb.on]
    if XID in verb.parameters:
        words += f" [with --xid: {' '.join(_WITH_XIDS)}]"
        return _argument("targets", words, metavar=metavar, nargs="*")
    # Who names a call already, and no target, means all.
    if verb.on is On.BOTH or any(parameter.is_required for parameter in verb.parameters):
        words += f" [{ALL}]"
        return _argument("targets", words, metavar=metavar, nargs="*", default=[ALL])
    return _argument("targets", words, metavar=metavar, nargs="+")


def _set_request(parsed: Parsed) -> Request:
    if not parsed.values and not parsed.reset:
        raise UsageError(
            "set: name an option, such as nvidia-cards=4 or cards nvidia=4, or use --reset"
        )
    values: dict[str, str] = {}
    problems = []
    for name, value in _options(parsed.values):
        if name in values:
            problems.append(f"set: {name} is given twice")
        values[name] = value
    if problems:
        raise UsageError(problems)
    return Request("set", {"values": values, "reset": parsed.reset})


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values of `nvidia-cards=4`, and of `cards nvidia=4 mlu=0`."""
    key = words[0] if words and "=" not in words[0] else ""
    vendors = [vendor.prefix for vendor in VENDORS]
    if key and not any("=" in word for word in words):
        raise UsageError(f"set {key}: it has no value: {_advice(key.replace('_', '-'))}")
    for word in words[1:] if key else words:
        name, equals, value = word.partition("=")
        if not equals or (key and name not in vendors):
            form = f"VENDOR=VALUE, with one of {', '.join(vendors)}" if key else "OPTION=VALUE"
            raise UsageError(f"set: {word!r} is not allowed: it must be {form}")
        yield (f"{name}-{key}" if key else name).replace("_", "-"), value


def _advice(name: str) -> str:
    """Return what to write instead of a name alone."""
    from hami_mock.settings.options import BY_NAME  # only after a mistake

    if name in BY_NAME:
        return f"write set {name}={BY_NAME[name].shown_default or BY_NAME[name].kind.metavar}"
    vendor = next((v.prefix for v in VENDORS if f"{v.prefix}-{name}" in BY_NAME), None)
    if vendor is None:
        short = (each.removeprefix(f"{v.prefix}-") for v in VENDORS for each in BY_NAME)
        return f"there is no such option{did_you_mean(name, short)}"
    option = BY_NAME[f"{vendor}-{name}"]
    return f"write set {name} {vendor}={option.shown_default or option.kind.metavar}"


_LOAD_HELP = (
    "a pod (NAMESPACE/POD), one of its containers (NAMESPACE/POD/CONTAINER), a glob of either, or "
    "cards (nvidia/0, a vendor, all) for whatever runs there; and last the load: percent of the "
    "card (80), a range (20-60), steady, idle, ramp, sine, burst, training or inference with "
    "percent, period and memory (sine:20-80:10m:memory=50), or a schedule"
)


def _load_request(parsed: Parsed) -> Request:
    *targets, last = parsed.words or [""]
    if parsed.clear:
        return Request("load", {"targets": parsed.words} if parsed.words else {})
    if not targets:
        example = f"ctl load {last or 'default/train-0'} 90"
        raise UsageError(f"load: name a target and its load, such as {example}, or use --clear")
    return Request("load", {"targets": targets, "load": last})


def _play_request(parsed: Parsed) -> Request:
    is_stdin = parsed.file == "-"
    try:
        # One that never ends is refused as too large.
        text = (
            sys.stdin.read(MOST_REQUEST_BYTES)
            if is_stdin
            else read_text("scenario play: can't read", parsed.file, MOST_REQUEST_BYTES)
        )
    except UnicodeError as error:
        raise UsageError("scenario play: can't read '-': not UTF-8 text") from error
    name = "stdin" if is_stdin else Path(parsed.file).name
    seed = {} if parsed.seed is None else {"seed": parsed.seed}
    return Request("play", {"text": text, "name": name, **seed})


def _since(value: object) -> dict[str, float]:
    """Return the argument of the request: after the event with a number, or from a time on."""
    text = str(value)
    if text.isascii() and text.isdigit():
        return {"since": int(text)}
    return {"after": moments.parse(text, time.time())}


_SINCE = Kind(_since, f"{moments.FORM}, or the number of an event", metavar="TIME")

_OWN = {
    "status": CtlCommand(
        "show the cards, their health, the resources, and which pods hold them",
        ("status", "status --watch", "status -o json"),
        lambda parsed: Request(WATCH if parsed.watch else "status"),
        (_switch("-w --watch", "keep running, and update the screen after each change"),),
        screens.status,
    ),
    "set": CtlCommand(
        "change options of the running agent; they override flags, variables and the file",
        ("set nvidia-cards=4 nvidia-model=T4", "set cards nvidia=4 mlu=0", "set --reset"),
        _set_request,
        (
            _argument("values", "any option of `hami-mock run`", metavar="OPTION=VALUE", nargs="*"),
            _switch("--reset", "first drop everything that was set with this command"),
        ),
    ),
    "load": CtlCommand(
        "set how busy containers are from now on; this overrides everything else",
        (
            "load default/train-0 90",
            "load default/train-0/main sine:20-80:10m",
            "load 'default/serve-*' inference:10-80:memory=75",
            "load nvidia/0 training",
            "load default/job '[{time: 1h, utilization: 80}, {time: 1h, utilization: 0}]'",
            "load default/train-0 --clear",
            "load --clear",
        ),
        _load_request,
        (
            _argument("words", _LOAD_HELP, metavar="TARGET… LOAD", nargs="*"),
            _switch("--clear", "undo what was set for the targets, or everything"),
        ),
    ),
    "reload": CtlCommand(
        "read the configuration file again", ("reload",), lambda _: Request("reload")
    ),
    "scenario play": CtlCommand(
        "play a scenario, after stopping the one that is running, if any",
        ("scenario play drill.yaml --seed 7", "scenario play - < drill.yaml"),
        _play_request,
        (
            _argument(
                "file",
                "the scenario, on the machine that ctl runs on; - for standard input",
                metavar="FILE",
            ),
            _argument(
                "--seed",
                "seed of the scenario's random choices (default: the one in the file)",
                **reads(SEED),
            ),
        ),
        screens.scenario,
    ),
    "scenario stop": CtlCommand(
        "stop the scenario and undo what it did",
        ("scenario stop",),
        lambda _: Request("stop"),
        screen=screens.scenario,
    ),
    "scenario status": CtlCommand(
        "show the progress of the scenario",
        ("scenario status",),
        lambda _: Request("status"),
        screen=screens.scenario,
        pick=lambda result: result["scenario"],
    ),
    "events": CtlCommand(
        "list what has happened to the node",
        ("events", "events -f --since 10:00", "events --since 2m -o json"),
        lambda parsed: Request(FOLLOW if parsed.follow else "events", parsed.since),
        (
            _switch("-f --follow", "keep printing new events until Ctrl-C"),
            _argument(
                "--since", f"show only events since {_SINCE.allowed}", default={}, **reads(_SINCE)
            ),
        ),
        screens.events,
    ),
}


def all_commands() -> dict[str, CtlCommand]:
    """Return the commands by name, in the order of the help."""
    verbs = {name: _verb_command(verb) for name, verb in VERBS.items()}
    return {"status": _OWN["status"], **verbs, **_OWN}
