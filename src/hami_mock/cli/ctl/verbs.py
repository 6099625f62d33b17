"""The verbs as commands of `hami-mock ctl`, made from their rows."""

import argparse
from collections.abc import Callable
from typing import Any

from hami_mock.cli.ctl.command import Argument, CtlCommand
from hami_mock.cli.parser import Parsed
from hami_mock.control.protocol import Request
from hami_mock.errors import UsageError
from hami_mock.faults.targets import ALL
from hami_mock.kit.values import SPAN, Kind
from hami_mock.node.fault import FaultKind, On, Parameter, Verb
from hami_mock.node.fault_kinds import VERBS, XID
from hami_mock.vendors import VENDORS

_TARGETS = {
    On.CARDS: ("CARD", "cards: nvidia/0, a UUID, a glob of either, a vendor, or all"),
    On.RESOURCES: ("RESOURCE", "resources: nvidia.com/gpu, a glob, a vendor, or all"),
    On.BOTH: ("TARGET", "cards or resources, by name, UUID, glob or vendor"),
}


def reader(kind: Kind[Any], from_text: Callable[[str], object] = str) -> Callable[[str], Any]:
    """Return what makes a value of a word, for argparse."""

    def read(text: str) -> Any:
        try:
            return kind.read(from_text(text))
        except ValueError:
            problem = f"{text!r} is not allowed: it must be {kind.allowed}"
            raise argparse.ArgumentTypeError(problem) from None

    return read


def verb_commands() -> dict[str, CtlCommand]:
    """Return a command for each verb."""
    return {name: _command(verb) for name, verb in VERBS.items()}


def _command(verb: Verb) -> CtlCommand:
    arguments = [*map(_argument, verb.parameters), _targets(verb)]
    if isinstance(verb, FaultKind):
        how = {"type": reader(SPAN), "metavar": "DURATION", "help": "end it after this time"}
        arguments.append(Argument("--for", how))
    fields = ("targets", "for", *(parameter.name for parameter in verb.parameters))

    def request(parsed: Parsed) -> Request:
        given = {field: getattr(parsed, field, None) for field in fields}
        if not given["targets"]:
            if given.get("xid") is None:
                raise UsageError(f"{verb.verb}: say which {_TARGETS[verb.on][1]}")
            given["targets"] = _vendors_with_xids()
        return Request(verb.verb, {key: value for key, value in given.items() if value is not None})

    return CtlCommand(verb.help, verb.examples, request, tuple(arguments))


def _argument(parameter: Parameter) -> Argument:
    how = {
        "type": reader(parameter.kind, parameter.from_text),
        "metavar": parameter.metavar,
        "help": parameter.help,
    }
    return Argument(parameter.name if parameter.is_required else f"--{parameter.name}", how)


def _targets(verb: Verb) -> Argument:
    metavar, words = _TARGETS[verb.on]
    how: dict[str, Any]
    if XID in verb.parameters:
        whose = " ".join(_vendors_with_xids())
        how = {"nargs": "*", "help": f"{words}; with --xid, it defaults to {whose}"}
    # Who names a call already, and no target, means all.
    elif verb.on is On.BOTH or any(parameter.is_required for parameter in verb.parameters):
        how = {"nargs": "*", "default": [ALL], "help": f"{words} [{ALL}]"}
    else:
        how = {"nargs": "+", "help": words}
    return Argument("targets", {"metavar": metavar, **how})


def _vendors_with_xids() -> list[str]:
    return [vendor.key for vendor in VENDORS if vendor.has_xids]
