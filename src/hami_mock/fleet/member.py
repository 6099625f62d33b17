"""One node of a fleet: all that is kept of it. Ten thousand of them fit into a few megabytes."""

from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import STOPPED
from hami_mock.node.pods import Pod
from hami_mock.settings.pools import Pool

PodKey = tuple[str, str]
"""A pod's namespace and name."""


class Member:
    """A node of a pool. Its cards and its state are made when somebody looks (`Fleet.state`).

    - faults: what is wrong with it on purpose; nothing with most
    - pods: those that are bound to it; None: none
    - is_there: the API server has the node
    - is_ready: so its Ready condition says, which KWOK writes
    - version: the newest one of the node that was seen
    - right: stands for what the node showed when it was as it should be; 0: it never was
    """

    __slots__ = ("faults", "index", "is_ready", "is_there", "pods", "pool", "right", "version")

    def __init__(self, pool: Pool, index: int) -> None:
        self.pool = pool
        self.index = index
        self.faults: tuple[Fault, ...] = ()
        self.pods: dict[PodKey, Pod] | None = None
        self.is_there = False
        self.is_ready = False
        self.version = 0
        self.right = 0

    @property
    def is_stopped(self) -> bool:
        return any(fault.kind is STOPPED for fault in self.faults)

    @property
    def name(self) -> str:
        return self.pool.node_name(self.index)

    @property
    def zone(self) -> str:
        return self.pool.zone_of(self.index)

    @property
    def rack(self) -> str:
        return self.pool.rack_of(self.index)

    def __repr__(self) -> str:
        return f"Member({self.name!r})"
