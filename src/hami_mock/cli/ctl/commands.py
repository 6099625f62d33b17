"""The commands of `hami-mock ctl`, as data: what each takes, asks the agent, and shows."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hami_mock.cli.ctl import screens
from hami_mock.cli.ctl.command import Argument, CtlCommand
from hami_mock.cli.ctl.verbs import verb_commands
from hami_mock.cli.parser import Parsed, reads
from hami_mock.control.protocol import FOLLOW, WATCH, Request
from hami_mock.errors import UsageError
from hami_mock.kit import moments
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.values import SEED, Kind
from hami_mock.vendors import VENDORS


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


def _play_request(parsed: Parsed) -> Request:
    try:
        text = (
            sys.stdin.read()
            if parsed.file == "-"
            else Path(parsed.file).read_text(encoding="utf-8")
        )
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"scenario play: can't read {parsed.file!r}: {reason}") from error
    name = "stdin" if parsed.file == "-" else Path(parsed.file).name
    seed = {} if parsed.seed is None else {"seed": parsed.seed}
    return Request("play", {"text": text, "name": name, **seed})


def _events_request(parsed: Parsed) -> Request:
    return Request(FOLLOW if parsed.follow else "events", parsed.since)


def _since(value: object) -> dict[str, float]:
    """Return the argument of the request: after the event with a number, or from a time on."""
    text = str(value)
    if text.isascii() and text.isdigit():
        return {"since": int(text)}
    return {"after": moments.parse(text, time.time())}


_SINCE = Kind(_since, f"{moments.FORM}, or the number of an event", metavar="TIME")


def _simple(command: str) -> Callable[[Parsed], Request]:
    return lambda _: Request(command)


def _switch(name: str, text: str) -> Argument:
    return Argument(name, {"action": "store_true", "help": text})


_VALUES = Argument(
    "values",
    {"metavar": "OPTION=VALUE", "nargs": "*", "help": "any option of `hami-mock run`"},
)

_STATUS = CtlCommand(
    "show the cards, their health, the resources, and which pods hold them",
    ("status", "status --watch", "status -o json"),
    lambda parsed: Request(WATCH if parsed.watch else "status"),
    (_switch("-w --watch", "keep running, and update the screen after each change"),),
    screen=screens.status,
)

_OTHERS: Mapping[str, CtlCommand] = {
    "set": CtlCommand(
        "change options of the running agent; they override flags, variables and the file",
        ("set nvidia-cards=4 nvidia-model=T4", "set cards nvidia=4 mlu=0", "set --reset"),
        _set_request,
        (
            _VALUES,
            _switch("--reset", "first drop everything that was set with this command"),
        ),
    ),
    "reload": CtlCommand("read the configuration file again", ("reload",), _simple("reload")),
    "scenario play": CtlCommand(
        "play a scenario, after stopping the one that is running, if any",
        ("scenario play drill.yaml --seed 7", "scenario play - < drill.yaml"),
        _play_request,
        (
            Argument(
                "file",
                {
                    "metavar": "FILE",
                    "help": "the scenario, on the machine that ctl runs on; - for standard input",
                },
            ),
            Argument(
                "--seed",
                {
                    **reads(SEED),
                    "help": "seed of the scenario's random choices (default: the one in the file)",
                },
            ),
        ),
        screens.scenario,
    ),
    "scenario stop": CtlCommand(
        "stop the scenario and undo what it did",
        ("scenario stop",),
        _simple("stop"),
        screen=screens.scenario,
    ),
    "scenario status": CtlCommand(
        "show the progress of the scenario",
        ("scenario status",),
        _simple("status"),
        screen=screens.scenario,
        pick=lambda result: result["scenario"],
    ),
    "events": CtlCommand(
        "list what has happened to the node",
        ("events", "events -f --since 10:00", "events --since 2m -o json"),
        _events_request,
        (
            _switch("-f --follow", "keep printing new events until Ctrl-C"),
            Argument(
                "--since",
                {
                    **reads(_SINCE),
                    "default": {},
                    "help": f"show only events since {_SINCE.allowed}",
                },
            ),
        ),
        screens.events,
    ),
}


def all_commands() -> dict[str, CtlCommand]:
    """Return the commands by name, in the order of the help."""
    return {"status": _STATUS, **verb_commands(), **_OTHERS}
