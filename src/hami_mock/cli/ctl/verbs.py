"""The verbs as commands of `hami-mock ctl`, made from their rows."""

from typing import Any

from hami_mock.cli.ctl.command import Argument, CtlCommand
from hami_mock.cli.parser import Parsed, reads
from hami_mock.control.protocol import Request
from hami_mock.errors import UsageError
from hami_mock.faults.targets import ALL
from hami_mock.kit.values import SPAN
from hami_mock.node.fault import FaultKind, On, Parameter, Verb
from hami_mock.node.fault_kinds import VERBS, XID
from hami_mock.vendors import VENDORS

_TARGETS = {
    On.CARDS: ("CARD", "cards: nvidia/0, a UUID, a glob of either, a vendor, or all"),
    On.RESOURCES: ("RESOURCE", "resources: nvidia.com/gpu, a glob, a vendor, or all"),
    On.BOTH: ("TARGET", "cards or resources, by name, UUID, glob or vendor"),
}


def verb_commands() -> dict[str, CtlCommand]:
    """Return a command for each verb."""
    return {name: _command(verb) for name, verb in VERBS.items()}


def _command(verb: Verb) -> CtlCommand:
    arguments = [*map(_argument, verb.parameters), _targets(verb)]
    if isinstance(verb, FaultKind):
        arguments.append(
            Argument("--for", {**reads(SPAN), "help": "end the fault after this time [never]"})
        )
    fields = ("targets", "for", *(parameter.name for parameter in verb.parameters))

    def request(parsed: Parsed) -> Request:
        given = {field: getattr(parsed, field, None) for field in fields}
        if not given["targets"]:
            if given.get("xid") is None:
                raise UsageError(f"{verb.verb}: name the targets: {_TARGETS[verb.on][1]}")
            given["targets"] = _vendors_with_xids()
        return Request(verb.verb, {key: value for key, value in given.items() if value is not None})

    return CtlCommand(verb.help, verb.examples, request, tuple(arguments))


def _argument(parameter: Parameter) -> Argument:
    name = parameter.name if parameter.is_required else f"--{parameter.name}"
    return Argument(name, {**reads(parameter.kind), "help": parameter.help})


def _targets(verb: Verb) -> Argument:
    metavar, words = _TARGETS[verb.on]
    how: dict[str, Any]
    if XID in verb.parameters:
        whose = " ".join(_vendors_with_xids())
        how = {"nargs": "*", "help": f"{words} [with --xid: {whose}]"}
    # Who names a call already, and no target, means all.
    elif verb.on is On.BOTH or any(parameter.is_required for parameter in verb.parameters):
        how = {"nargs": "*", "default": [ALL], "help": f"{words} [{ALL}]"}
    else:
        how = {"nargs": "+", "help": words}
    return Argument("targets", {"metavar": metavar, **how})


def _vendors_with_xids() -> list[str]:
    return [vendor.prefix for vendor in VENDORS if vendor.has_xids]
