"""The verbs as commands of `hami-mock ctl`, made from their table."""

from collections.abc import Mapping

from hami_mock.cli.ctl.command import Argument, CtlCommand, Parsed, duration
from hami_mock.control.protocol import Request
from hami_mock.errors import UsageError
from hami_mock.faults.actions import VERBS, Verb
from hami_mock.faults.targets import ALL
from hami_mock.kit import durations
from hami_mock.node.fault import Call
from hami_mock.vendors import NVIDIA

_PARAMETERS = {
    "xid": Argument("--xid", {"type": int, "metavar": "N", "help": "the number of NVIDIA's error"}),
    "reason": Argument("--reason", {"metavar": "TEXT", "help": "why, for events and the log"}),
    "call": Argument(
        "call", {"metavar": "CALL", "choices": [str(call) for call in Call],
                 "help": f"the kubelet's call: {' or '.join(Call)}"},
    ),
    "seconds": Argument(
        "seconds", {"metavar": "DURATION", "type": duration, "help": durations.FORM}
    ),
}  # fmt: skip
_FOR = Argument(
    "--for", {"type": duration, "metavar": "DURATION", "help": "end it by itself after this time"}
)
_CARDS = "cards: nvidia/0, a UUID, a glob of either, a vendor, or all"
_RESOURCES = "resources: nvidia.com/gpu, a glob, a vendor, or all"

_EXAMPLES = {
    "fail": ("fail nvidia/0 --xid 79", "fail 'mlu/*' --reason 'no power' --for 2m"),
    "recover": ("recover nvidia/0", "recover all"),
    "lose": ("lose nvidia/1", "lose 'GPU-bfc34048-*' --for 30s"),
    "return": ("return nvidia/1",),
    "degrade": ("degrade nvidia/0 --reason thermal", "degrade ascend --reason ecc --for 5m"),
    "down": ("down nvidia", "down cambricon.com/vmlu --for 1m"),
    "up": ("up nvidia", "up all"),
    "delay": ("delay allocate 2s", "delay allocate 500ms nvidia.com/gpu --for 10m"),
    "hang": ("hang allocate 30s nvidia.com/gpu",),
    "break": ("break allocate", "break prestart nvidia --reason 'no driver' --for 1m"),
    "refuse": ("refuse huawei.com/Ascend910-memory --for 1m",),
    "drop": ("drop all", "drop nvidia.com/gpu"),
    "clear": ("clear", "clear nvidia/0 nvidia.com/gpu"),
}


def _command(name: str, verb: Verb) -> CtlCommand:
    on_all = name == "clear"
    metavar, words = ("CARD", _CARDS) if verb.on_cards else ("RESOURCE", _RESOURCES)
    if on_all:
        metavar, words = "WHAT", "cards or resources, by name, UUID, glob or vendor"
    # A call has to be named already: who says no more means all.
    if on_all or "call" in verb.parameters:
        how = {"nargs": "*", "default": [ALL], "help": f"{words} [{ALL}]"}
    elif "xid" in verb.parameters:
        how = {"nargs": "*", "help": f"{words}; may be left out with --xid: {NVIDIA.key}"}
    else:
        how = {"nargs": "+", "help": words}
    arguments = [_PARAMETERS[parameter] for parameter in verb.parameters]
    arguments.append(Argument("targets", {"metavar": metavar, **how}))
    if verb.lasts:
        arguments.append(_FOR)
    fields = (*verb.parameters, "targets", "for")

    def request(parsed: Parsed) -> Request:
        given = {field: getattr(parsed, field, None) for field in fields}
        if not given["targets"]:
            if given.get("xid") is None:
                raise UsageError(f"{name}: say which {words}")
            given["targets"] = [NVIDIA.key]
        return Request(name, {key: value for key, value in given.items() if value is not None})

    return CtlCommand(verb.help, _EXAMPLES[name], request, tuple(arguments))


VERB_COMMANDS: Mapping[str, CtlCommand] = {
    name: _command(name, verb) for name, verb in VERBS.items()
}
