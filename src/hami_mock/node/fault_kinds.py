"""The table of verbs and kinds of fault: `ctl`, scenarios, control, help and metrics read it. Pure.

A new kind of fault is one row here, and whatever a view does about it.
"""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace

from hami_mock.kit import durations
from hami_mock.kit.values import LINE, SPAN, one_of
from hami_mock.node import xid
from hami_mock.node.event_kinds import Kind as EventKind
from hami_mock.node.fault import Call, FaultKind, On, Parameter, Verb

XID = Parameter(
    "xid",
    replace(xid.XID, show=xid.describe),
    "error number of NVIDIA's driver, such as 79",
    is_drawn=True,
)
REASON = Parameter("reason", LINE, "reason to show in events and in the log")
CALL = Parameter(
    "call",
    replace(one_of(Call), metavar="CALL"),
    f"the kubelet's call: {' or '.join(Call)}",
    is_required=True,
)
SECONDS = Parameter("seconds", SPAN, f"for how long: {durations.FORM}", is_required=True)

UNHEALTHY = FaultKind(
    "fail",
    On.CARDS,
    "make cards unhealthy, with a Xid or a reason",
    ("fail nvidia/0 --xid 79", "fail 'mlu/*' --reason 'no power' --for 2m"),
    (XID, REASON),
    name="unhealthy",
    mended_by="recover",
    began=EventKind.CARD_FAILED,
    ended=EventKind.CARD_RECOVERED,
)
LOST = FaultKind(
    "lose",
    On.CARDS,
    "remove cards from the kubelet's list, as if they had been unplugged",
    ("lose nvidia/1", "lose 'GPU-bfc34048-*' --for 30s"),
    (REASON,),
    name="lost",
    mended_by="return",
    began=EventKind.CARD_LOST,
    ended=EventKind.CARD_RETURNED,
)
DEGRADED = FaultKind(
    "degrade",
    On.CARDS,
    "mark cards as degraded; the kubelet still sees them as healthy",
    ("degrade nvidia/0 --reason thermal", "degrade ascend --reason ecc --for 5m"),
    (REASON,),
    name="degraded",
    mended_by="recover",
    began=EventKind.CARD_DEGRADED,
    ended=EventKind.CARD_RESTORED,
)
DOWN = FaultKind(
    "down",
    On.RESOURCES,
    "take resources away from the kubelet, as if their plugin had died",
    ("down nvidia", "down cambricon.com/vmlu --for 1m"),
    (REASON,),
    name="down",
    mended_by="up",
)
REFUSED = FaultKind(
    "refuse",
    On.RESOURCES,
    "make registrations fail, as if the kubelet had refused them",
    ("refuse huawei.com/Ascend910-memory --for 1m",),
    (REASON,),
    name="refused",
    mended_by="up",
    needs_plugin=True,
)
SLOW = FaultKind(
    "delay",
    On.RESOURCES,
    "delay the answer to a call",
    ("delay allocate 2s", "delay allocate 500ms nvidia.com/gpu --for 10m"),
    (CALL, SECONDS),
    name="slow",
    needs_plugin=True,
)
HUNG = FaultKind(
    "hang",
    On.RESOURCES,
    "hold a call for some time, then answer it with an error",
    ("hang allocate 30s nvidia.com/gpu",),
    (CALL, SECONDS),
    name="hung",
    needs_plugin=True,
)
BROKEN = FaultKind(
    "break",
    On.RESOURCES,
    "answer a call with an error immediately",
    ("break allocate", "break prestart nvidia --reason 'no driver' --for 1m"),
    (CALL, REASON),
    name="broken",
    needs_plugin=True,
)

RECOVER = Verb(
    "recover",
    On.CARDS,
    "end the faults that made cards unhealthy or degraded",
    ("recover nvidia/0", "recover all"),
)
RETURN = Verb("return", On.CARDS, "bring lost cards back", ("return nvidia/1",))
UP = Verb("up", On.RESOURCES, "bring back resources that are down", ("up nvidia", "up all"))
DROP = Verb(
    "drop",
    On.RESOURCES,
    "close the list streams once; the resources register again",
    ("drop all", "drop nvidia.com/gpu"),
    (REASON,),
    needs_plugin=True,
)
CLEAR = Verb(
    "clear",
    On.BOTH,
    "end all faults of cards and resources",
    ("clear", "clear nvidia/0 nvidia.com/gpu"),
)

_OF_CARDS = (UNHEALTHY, RECOVER, LOST, RETURN, DEGRADED)
_OF_RESOURCES = (DOWN, UP, SLOW, HUNG, BROKEN, REFUSED, DROP)
VERBS: dict[str, Verb] = {row.verb: row for row in (*_OF_CARDS, *_OF_RESOURCES, CLEAR)}

STOPPED = FaultKind(
    "stop-node",
    On.NODES,
    "stop nodes, as if their power had failed: KWOK no longer keeps them ready",
    ("stop-node a100-17", "stop-node rack=a100-r3 --for 5m"),
    (REASON,),
    name="stopped",
    mended_by="start-node",
)
START = Verb("start-node", On.NODES, "start nodes that were stopped", ("start-node 'a100-*'",))
OF_NODES: dict[str, Verb] = {row.verb: row for row in (STOPPED, START)}
"""What can be done to nodes as a whole, where there are several: in a fleet."""
EVERY_VERB: Mapping[str, Verb] = ChainMap(VERBS, OF_NODES)


def fault_kinds() -> list[FaultKind]:
    return [row for row in VERBS.values() if isinstance(row, FaultKind)]


def mended_by(verb: Verb) -> frozenset[FaultKind]:
    return frozenset(k for k in fault_kinds() if verb is CLEAR or k.mended_by == verb.verb)


def parameter_names() -> set[str]:
    return {parameter.name for row in VERBS.values() for parameter in row.parameters}
