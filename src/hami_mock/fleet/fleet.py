"""The fleet: its nodes, what is wrong with them, and who is told when that changes.

It says what should be. `controller` makes the API server's nodes so, and tells what is there.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.faults.actions import apply
from hami_mock.faults.targets import listed
from hami_mock.fleet import faults as fleet_faults
from hami_mock.fleet import targets
from hami_mock.fleet.faults import Kept
from hami_mock.fleet.kinds import FLEET_VERBS, refuse_call
from hami_mock.fleet.member import Member, PodKey
from hami_mock.fleet.naming import Naming
from hami_mock.fleet.nodes import assigned_holders, state_of
from hami_mock.fleet.targets import Found
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.similar import did_you_mean
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import EventLog
from hami_mock.node.fault import Fault, On, Verb
from hami_mock.node.fault_kinds import CLEAR, START, STOPPED
from hami_mock.node.state import NodeState
from hami_mock.settings.pools import Pool


@dataclass(frozen=True)
class Done:
    """What a verb did: which faults began and ended, by node."""

    touched: Mapping[Member, tuple[str, ...]]
    begun: Mapping[Member, tuple[Fault, ...]]
    ended: Mapping[Member, tuple[Fault, ...]]


class Fleet:
    """All nodes of all pools, and what is true of them. Whoever shows them waits for `changes`."""

    def __init__(
        self,
        name: str,
        pools: Iterable[Pool],
        events: EventLog | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.pools = tuple(pools)
        self.events = events or EventLog()
        self.changes = Broadcast()
        """Told after any change: of faults, of pods, of what the API server has."""
        self.members = {
            pool.node_name(index): Member(pool, index)
            for pool in self.pools
            for index in range(pool.nodes)
        }
        """By the name of the node."""
        self.orders = Broadcast()
        """Told when something is to be written: after faults begin or end, and when nodes must come
        or go."""
        self.changed: set[str] = set()
        """The nodes to write: new ones, and those with other faults than the API server knows."""
        self.leaving: dict[str, tuple[PodKey, ...]] = {}
        """The nodes to delete, and the pods that are on them."""
        self._clock = clock
        self._until: dict[Fault, float] = {}
        """When faults end by themselves."""

    def of_pool(self, pool: str) -> list[Member]:
        return [member for member in self.members.values() if member.pool.name == pool]

    def state(self, member: Member) -> NodeState:
        """Return a node's state with its faults and pods. Use it and drop it: it isn't kept up."""
        state = state_of(member.pool, member.index, member.faults)
        # Of those that there are now: who looks may wait meanwhile.
        state.pods = dict(member.pods or {})
        if member.faults and state.pods:
            # What they have of a card that has failed counts.
            state.holders.name(assigned_holders(state))
        return state

    def find(self, words: Iterable[str]) -> list[Found]:
        """Return the nodes that words mean, and the words for cards on them (`fleet/targets`).

        Raises UsageError for what names nothing.
        """
        return targets.find([*self.members.values()], words)

    def act(
        self,
        verb: str,
        found: Sequence[Found],
        parameters: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> Done:
        """Do what a verb of `ctl` says to nodes and cards; faults end after `seconds`, if given.

        Raises UsageError, before anything is done, if no node has such a card, or one can't have
        that.
        """
        row = FLEET_VERBS.get(verb)
        if row is None:
            raise UsageError(
                f"{verb!r} can't be done to a fleet: use one of {', '.join(FLEET_VERBS)}"
            )
        given = parameters or {}
        refuse_call(given)
        until = None if seconds is None else round(self._clock() + seconds, 3)
        naming = Naming(row)
        acted = [(m, *self._acted(row, naming, m, words, given)) for m, words in found]
        naming.check()
        touched: dict[Member, tuple[str, ...]] = {}
        begun, ended = {}, {}
        for member, after, names in acted:
            before = frozenset(member.faults)
            if names:
                touched[member] = names
            if new := tuple(f for f in after if f not in before):
                begun[member] = new
                self._until |= dict.fromkeys(new, until) if until is not None else {}
            if gone := tuple(before - frozenset(after)):
                ended[member] = gone
            self._take(member, after)
        if begun or ended:
            self._tell(Kind.FAULT_BEGAN, begun, "now")
            self._tell(Kind.FAULT_ENDED, ended, "no longer")
            self.tell_orders()
        return Done(touched, begun, ended)

    def scale(self, pool: str, nodes: int) -> tuple[list[str], list[str]]:
        """Let a pool have so many nodes; return those that come and those that go.

        Those that aren't there go first, then those without pods, and of these the last ones.
        """
        before = next((each for each in self.pools if each.name == pool), None)
        if before is None:
            raise UsageError(_no_pool(pool, self.pools))
        now = replace(before, nodes=nodes)
        self.pools = tuple(now if each is before else each for each in self.pools)
        own = self.of_pool(pool)
        for member in own:
            member.pool = now
        taken = {member.index for member in own}
        free = (index for index in count() if index not in taken)
        new = [Member(now, index) for index in islice(free, max(0, nodes - len(own)))]
        gone = sorted(own, key=_worth)[nodes:]
        self.members |= {member.name: member for member in new}
        self.changed |= {member.name for member in new}
        for member in gone:
            self._leave(member)
        self.tell_orders()
        return [member.name for member in new], [member.name for member in gone]

    def _leave(self, member: Member) -> None:
        self._take(member, ())
        self.changed.discard(member.name)
        del self.members[member.name]
        if member.is_there:
            self.leaving[member.name] = tuple(member.pods or ())

    def adopt(self, name: str) -> Member | None:
        """Return a new member for a node of one of the pools that goes beyond what they have."""
        for pool in self.pools:
            index = pool.index_of(name)
            if index is not None:
                self.members[name] = Member(pool, index)
                return self.members[name]
        return None

    def tell_orders(self) -> None:
        self.orders.send()
        self.changes.send()

    def pods_changed(self, member: Member) -> None:
        """Note that others pods are on a node: on cards that have failed, theirs still count."""
        if member.faults:
            self.changed.add(member.name)
            self.orders.send()
        self.changes.send()

    def end_faults(self, ending: Mapping[Member, Iterable[Fault]]) -> None:
        """Let faults end; one that has ended already is passed over."""
        ended = {}
        for member, own in ending.items():
            if gone := tuple(set(own) & set(member.faults)):
                ended[member] = gone
                self._take(member, tuple(f for f in member.faults if f not in gone))
        if ended:
            self._tell(Kind.FAULT_ENDED, ended, "no longer")
            self.tell_orders()

    def end_overdue(self) -> float:
        """Let the faults end whose time has come; return when the next one's will, inf: never."""
        now = self._clock()
        over = {fault for fault, until in self._until.items() if until <= now}
        if over:
            self.end_faults(
                {m: own for m in self.members.values() if (own := over.intersection(m.faults))}
            )
            for fault in over:
                self._until.pop(fault, None)
        return min(self._until.values(), default=math.inf)

    def kept(self, member: Member) -> Iterator[Kept]:
        """Yield a node's faults with their ends, as its annotation has them."""
        return (Kept(fault, self._until.get(fault)) for fault in member.faults)

    def annotation(self, member: Member, state: NodeState) -> str | None:
        """Return what the annotation should say of its faults; None: there should be none."""
        return fleet_faults.write(state, self.kept(member))

    def restore(self, member: Member, text: str | None) -> None:
        """Take over the faults that a node's annotation tells of, at the start."""
        kept = fleet_faults.read(text, self.state(member)) if text else ()
        member.faults = tuple(each.fault for each in kept)
        self._until |= {fault: until for fault, until in kept if until is not None}

    def _acted(
        self,
        verb: Verb,
        naming: Naming,
        member: Member,
        words: Sequence[str] | None,
        parameters: Mapping[str, Any],
    ) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
        """Return the faults that a node has after a verb, and the names of what it acts on."""
        if verb.on is On.NODES:
            if words is not None:
                raise UsageError(f"{verb.verb}: name nodes, not cards of {member.name}")
            return self._with_node(member, verb is START, parameters), (member.name,)
        if verb is CLEAR and words is None:
            return (), (member.name,)
        state = self.state(member)
        found = naming.on(state.node, words)
        try:
            apply(verb, parameters, state, found)
        except UsageError as error:
            raise UsageError(f"{member.name}: {each}" for each in error.problems) from error
        return state.faults, tuple(target.name for target in found)

    def _with_node(
        self, member: Member, is_start: bool, parameters: Mapping[str, Any]
    ) -> tuple[Fault, ...]:
        rest = tuple(f for f in member.faults if f.kind is not STOPPED)
        if is_start:
            return rest
        return (*rest, Fault(STOPPED, frozenset({member.name}), parameters.get("reason", "")))

    def _take(self, member: Member, faults: tuple[Fault, ...]) -> None:
        if faults != member.faults:
            for fault in set(member.faults) - set(faults):
                self._until.pop(fault, None)
            member.faults = faults
            self.changed.add(member.name)

    def _tell(self, kind: Kind, faults: Mapping[Member, Sequence[Fault]], when: str) -> None:
        """Add an event for all nodes that have the same: a rack is one line, not a hundred."""
        for fault, number, members in fleet_faults.alike(faults):
            names = [member.name for member in members]
            many = f"{len(names)} nodes ({names[0]} … {names[-1]})"
            is_node = fault.kind.on is On.NODES
            did = f"{when} {fault.text}" if is_node else fleet_faults.told(fault, number, when)
            self.events.add(kind, names[0] if len(names) == 1 else many, did)


def _worth(member: Member) -> tuple[bool, bool, int]:
    """Return what sorts the nodes to keep before those to let go."""
    return not member.is_there, not member.pods, member.index


def _no_pool(name: str, pools: Sequence[Pool]) -> str:
    there = [pool.name for pool in pools]
    return (
        f"there is no pool {name!r}{did_you_mean(name, there) or f': use one of {listed(there)}'}"
    )
