"""`hami-mock fleet fail`, `recover`, …: the verbs of `ctl`, over nodes, racks, zones and pools."""

from hami_mock.cli.fleet.place import asked, with_fleet
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.kit.values import SPAN
from hami_mock.node.fault import Call, FaultKind, On, Verb
from hami_mock.node.fault_kinds import CALL

_NODES = "nodes: a name, a pool, rack=NAME, zone=NAME, a glob of these, or all"
_CARDS = (
    f"{_NODES}; with a colon and a card (nvidia/0, its number on the node, a glob, a maker) that "
    "alone, else all cards"
)
_RESOURCES = f"{_NODES}; with a colon and a resource (nvidia.com/gpu, a glob, a maker) that alone"
_BOTH = (
    f"{_NODES}; with a colon and a card or a resource (nvidia/0, its number on the node, "
    "nvidia.com/gpu, a glob, a maker) that alone, else all of them"
)
_TARGETS = {
    On.NODES: ("NODE", _NODES),
    On.CARDS: ("NODE[:CARD]", _CARDS),
    On.RESOURCES: ("NODE[:RESOURCE]", _RESOURCES),
    On.BOTH: ("NODE[:TARGET]", _BOTH),
}
_CALL = f"the call: {Call.ALLOCATE}, by which a pod gets its devices"
"""Without a kubelet there is no other."""
_EXAMPLES = {
    "fail": ("fail a100-17:nvidia/0 --xid 79", "fail rack=a100-r3 --reason 'no power' --for 5m"),
    "recover": ("recover rack=a100-r3", "recover all"),
    "lose": ("lose 'zone=eu-1a:nvidia/*' --for 30s",),
    "return": ("return a100-17:0",),
    "degrade": ("degrade a100:7 --reason thermal",),
    "plugin-down": ("plugin-down a100-17:nvidia.com/gpu",),
    "plugin-up": ("plugin-up a100",),
    "delay": ("delay allocate 2s rack=a100-r3",),
    "hang": ("hang allocate 30s a100-17",),
    "break": ("break allocate 'a100-1?' --for 1m",),
    "clear": ("clear all", "clear a100-17:nvidia/0"),
}


def parser(name: str, verb: Verb) -> Parser:
    """Return the parser of a verb, by the name that it has here."""
    examples = _EXAMPLES.get(name, verb.examples)
    parser = Parser(
        f"fleet {name}", verb.help, usage=None, examples=[f"fleet {each}" for each in examples]
    )
    for each in verb.parameters:
        text = _CALL if each is CALL else each.help
        parser.add(f"{'' if each.is_required else '--'}{each.name}", text, **reads(each.kind))
    metavar, text = _TARGETS[verb.on]
    parser.add("targets", text, metavar=metavar, nargs="+")
    if isinstance(verb, FaultKind):
        parser.add("--for", "end the fault after this time [never]", **reads(SPAN))
    parser.set_defaults(verb=verb)
    return with_fleet(parser).add_output()


def run(parsed: Parsed) -> None:
    verb: Verb = parsed.verb
    fields = ("targets", "for", *(parameter.name for parameter in verb.parameters))
    given = {field: getattr(parsed, field, None) for field in fields}
    answer = asked(parsed, verb.verb, **{k: v for k, v in given.items() if v is not None})
    show(answer, parsed.output, answer["summary"])
