"""NodeState: what is true of the node now, and who is told when it changes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from hami_mock.kit.broadcast import Broadcast
from hami_mock.kubelet.holder import Container
from hami_mock.node.cards import Card
from hami_mock.node.claims import ClaimKey, PreparedClaim
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import EventLog
from hami_mock.node.fault import Call, Fault, FaultKind
from hami_mock.node.fault_kinds import DEGRADED, LOST, UNHEALTHY
from hami_mock.node.holders import Holders, Holding, Load
from hami_mock.node.holdings import Holdings, Parts
from hami_mock.node.pods import Pod
from hami_mock.node.readings import Reading, Usage
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node
from hami_mock.node.xid import APPLICATION_ERRORS, describe

if TYPE_CHECKING:
    # Few cards are cut.
    from hami_mock.node.instances import Cut, Instance

_IDLE = Load()
_SHOWN = 20
"""How many of the faults that are left an event names."""


class Health(StrEnum):
    """What the kubelet makes of a card's devices; those of a lost card aren't listed at all."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    LOST = "lost"


@dataclass(frozen=True)
class CardHealth:
    """A card's health, whether it is degraded (healthy or not), and what says so."""

    health: Health = Health.HEALTHY
    is_degraded: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        return self.health is Health.HEALTHY


class NodeState:
    """The node and what is wrong with it. Whoever shows a part of it waits for `changes`.

    A card is unhealthy, lost or degraded for as long as any fault says so: faults may overlap, and
    the end of one doesn't mend what another broke.
    """

    def __init__(
        self,
        node: Node,
        events: EventLog | None = None,
        ignored_xids: Set[int] = APPLICATION_ERRORS,
    ) -> None:
        self.node = node
        self.events = events or EventLog()
        self.ignored_xids = ignored_xids
        self.faults: tuple[Fault, ...] = ()
        self.xids: Counter[tuple[str, int]] = Counter()
        """How often each card had each Xid, by the card's UUID."""
        self.drops: Counter[str] = Counter()
        """How often each resource's list streams were dropped on command."""
        self.holders = Holders()
        """Who holds which device; its changes are told apart, since no list depends on them."""
        self.claims: dict[ClaimKey, PreparedClaim] = {}
        """What claims have of the cards, as prepared by DRA drivers; holders hold them by name."""
        self.loads: dict[tuple[str, Container], Load] = {}
        """What containers make of the cards they hold, by the card's UUID; idle if not in here."""
        self._readings: dict[str, Reading] = {}
        self.before_look: Callable[[], None] | None = None
        """Brings `readings` up to date, where nobody does so all the time."""
        self.load_changes = Broadcast()
        """Told after `loads` and `readings` were made anew: once a second while a card is held."""
        self.pods: dict[tuple[str, str], Pod] = {}
        """By namespace and name; empty where the API server isn't asked."""
        self.pod_changes = Broadcast()
        self._holdings = Holdings()
        self.changes = Broadcast()
        self.cuts: dict[str, Cut] = {}
        """What was cut out of each card that can be cut now (in MIG mode), by its UUID."""
        self.power_limits: dict[str, float] = {}
        """W that cards may draw, by UUID, where somebody has set it; else it is the model's."""
        self._cut({})
        self._index()

    @property
    def readings(self) -> dict[str, Reading]:
        """What each card shows now, by its UUID: one for every card while the load runs.

        Take it once for all cards that are shown together: it may be another one the next time.
        """
        if self.before_look is not None:
            self.before_look()
        return self._readings

    @readings.setter
    def readings(self, readings: dict[str, Reading]) -> None:
        self._readings = readings

    def begin_faults(self, *faults: Fault) -> None:
        self.faults += faults
        for fault in faults:
            for target in sorted(fault.targets):
                self.events.add(fault.kind.began, self.name_of(target), fault.text)
        self._update()

    def end_faults(self, *faults: Fault) -> None:
        """Let faults end, all at once; one that has ended already is passed over."""
        wanted = set(faults)
        self._end({fault: fault.targets for fault in self.faults if fault in wanted})

    def end_faults_of(self, targets: Set[str], kinds: Set[FaultKind] | None = None) -> None:
        """Let all faults of these kinds (None: of any) end for some of their targets."""
        among = (f for f in self.faults if kinds is None or f.kind in kinds)
        self._end({f: f.targets & targets for f in among if f.targets & targets})

    def _end(self, ending: Mapping[Fault, Set[str]]) -> None:
        rest = [replace(f, targets=f.targets - of) for f, of in ending.items() if f.targets - of]
        self.faults = (*(f for f in self.faults if f not in ending), *rest)
        for fault, targets in ending.items():
            for target in sorted(targets):
                self._tell_end(fault, target)
        self._update()

    def count_xid(self, cards: Iterable[Card], xid: int) -> None:
        """Count a Xid that does a card no harm."""
        for card in cards:
            self.xids[card.uuid, xid] += 1
            harm = "an application's error" if xid in self.ignored_xids else "the card is unhealthy"
            self.events.add(Kind.XID, card.name, f"{describe(xid)}: {harm}")
        self.changes.send()

    def drop_streams(self, resources: Iterable[Resource], reason: str = "") -> None:
        """Let the list streams of resources break off; their plugins register again."""
        for resource in resources:
            self.drops[resource.name] += 1
            self.events.add(Kind.STREAMS_DROPPED, resource.name, reason or "on command")
        self._update()

    def change(self, node: Node) -> None:
        """Take another configuration of the node; faults of what is gone go with it."""
        before, self.node = self.cards, node
        self._cut(before)
        # Another model has another limit.
        self.power_limits = {
            card.uuid: self.power_limits[card.uuid]
            for card in node.cards
            if card.uuid in self.power_limits and card.model == before[card.uuid].model
        }
        here = {card.uuid for card in node.cards} | {resource.name for resource in node.resources}
        self.faults = tuple(
            replace(f, targets=f.targets & here) if f.targets - here else f
            for f in self.faults
            if f.targets & here
        )
        self._update()

    def current(self, resource: Resource) -> Resource:
        """Return a resource as it is now: a change of the configuration may have replaced it."""
        return self.resources[resource.name] if self.offers(resource) else resource

    def offers(self, resource: Resource) -> bool:
        """Tell whether the node still has a resource; its name alone may be another one's now."""
        now = self.resources.get(resource.name)
        return now is not None and now.offer == resource.offer

    def health(self, card: Card) -> CardHealth:
        """Return how a card is; one that is lost and unhealthy is lost."""
        uuid = card.uuid
        health = Health.UNHEALTHY if uuid in self.unhealthy else Health.HEALTHY
        return CardHealth(
            Health.LOST if uuid in self.lost else health,
            is_degraded=uuid in self.degraded,
            reasons=tuple(fault.text for fault in self.faults_of(uuid)),
        )

    def holdings(self) -> dict[str, list[Holding]]:
        """Return who holds how much of each card, by the card's UUID."""
        return self._holdings.of(self)

    def prepare_claim(self, claim: PreparedClaim) -> None:
        """Take over what a claim has; who holds it, the kubelet will tell."""
        self.claims[claim.key] = claim
        self.holders.give(claim.key.driver, [claim.key.claim])

    def unprepare_claim(self, claim: PreparedClaim) -> None:
        """Forget what a claim had; one that is forgotten already is passed over."""
        if self.claims.pop(claim.key, None) is not None:
            self.holders.changes.send()

    def assigned(self) -> Mapping[Container, Parts]:
        """Return what HAMi's scheduler assigned to containers, where it has."""
        return self._holdings.assigned(self)

    def limit_power(self, card: Card, watts: float) -> None:
        """Let a card draw no more than so much."""
        self.power_limits = {**self.power_limits, card.uuid: watts}
        self._update()

    def cut(self, card: Card, cut: "Cut | None") -> None:
        """Take over what was cut out of a card; None: it can't be cut any more."""
        self.cuts = {uuid: each for uuid, each in self.cuts.items() if uuid != card.uuid}
        if cut is not None:
            self.cuts[card.uuid] = cut
        from hami_mock.node.instances import told

        self.events.add(Kind.CARD_CUT, card.name, told(cut))
        self._update()

    def cut_of(self, card: Card) -> "Cut | None":
        """Return what a card is cut into, whoever has cut it; None: it isn't in MIG mode."""
        cut, held = self.cuts.get(card.uuid), self.held_instances(card)
        if not held:
            return cut
        from hami_mock.node.instances import Cutter

        return Cutter(card.vendor, card.model, card.uuid).with_held(cut, held)

    def instances(self, card: Card) -> "list[Instance]":
        """Return the devices that a card is cut into, whoever has cut it, in their order on it."""
        every = (*self.cut_out_of(card), *self.held_instances(card))
        found = {instance.uuid: instance for instance in every}
        return sorted(found.values(), key=lambda each: (each.start, each.compute_instance))

    def held_instances(self, card: Card) -> "list[Instance]":
        """Return the devices cut out of a card that containers hold, whoever has cut them."""
        return [instance for usage in self.usages(card) for instance in usage.instances]

    def cut_out_of(self, card: Card) -> "list[Instance]":
        """Return the devices that were cut out of a card here, whoever holds them."""
        cut = self.cuts.get(card.uuid)
        if cut is None:
            return []
        from hami_mock.node.instances import Cutter

        return Cutter(card.vendor, card.model, card.uuid).devices(cut)

    def usages(self, card: Card) -> list[Usage]:
        """Return what the containers that hold a card make of it, sorted by container."""
        return [
            Usage(
                holding.container,
                self.loads.get((card.uuid, holding.container), _IDLE),
                holding.memory,
                holding.cores,
                holding.slots,
                holding.instances,
                holding.owner,
            )
            for holding in self.holdings().get(card.uuid, ())
            if holding.container is not None
        ]

    def load(self, card: Card, container: Container | None = None) -> Load:
        """Return how busy a card is, in all or with the work of one container."""
        if container is not None:
            return self.loads.get((card.uuid, container), Load())
        return Load.total(load for (uuid, _), load in self.loads.items() if uuid == card.uuid)

    def device_health(self, resource: Resource) -> dict[str, int]:
        """Return how many devices of a resource are healthy, unhealthy, lost or retired."""
        counts = resource.devices.counts
        found = dict.fromkeys([*map(str, Health), "retired"], 0)
        for card in resource.cards:
            found[self.health(card).health] += counts[card.uuid]
        found["retired"] = sum(resource.devices.retired.values())
        return found

    def count_held(self, resource: Resource) -> int | None:
        """Return how many devices or units of a resource pods hold; None if nobody knows."""
        if resource.in_status:
            pods = (pod for pod in self.pods.values() if not pod.is_over)
            return sum(pod.asks_for(resource.name) for pod in pods)
        holders = self.holders.all
        if holders is None:
            return None
        return sum(len(holder.devices.get(resource.name, ())) for holder in holders)

    def name_of(self, target: str) -> str:
        """Return what people call a fault's target: nvidia/0, or a resource's name."""
        card = self.cards.get(target)
        return card.name if card else target

    def has(self, target: str, kind: FaultKind) -> bool:
        return any(f.kind is kind and target in f.targets for f in self.faults)

    def faults_of(self, target: str, call: Call | None = None) -> list[Fault]:
        """Return the faults of a card or a resource, on one call or on none."""
        return [f for f in self.faults if target in f.targets and f.call is call]

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        await self.changes.wait_until(condition)

    def _tell_end(self, fault: Fault, target: str) -> None:
        others = (f.text for f in self.faults if f.kind is fault.kind and target in f.targets)
        still = [*islice(others, _SHOWN)]
        if still:
            message = f"{fault.text}; still {', '.join(still)}"
            self.events.add(Kind.FAULT_ENDED, self.name_of(target), message)
        else:
            self.events.add(fault.kind.ended, self.name_of(target), f"no longer {fault.text}")

    def _cut(self, before: Mapping[str, Card]) -> None:
        """Cut cards as they are configured, but for those that were so before."""
        cuts = {}
        for card in self.node.cards:
            known = before.get(card.uuid)
            if known is not None and (known.model, known.cut) == (card.model, card.cut):
                cut = self.cuts.get(card.uuid)
            else:
                cut = _configured(card)
            if cut is not None:
                cuts[card.uuid] = cut
        self.cuts = cuts

    def _index(self) -> None:
        self.cards = {card.uuid: card for card in self.node.cards}
        self.resources = {resource.name: resource for resource in self.node.resources}
        self.unhealthy, self.lost, self.degraded = (
            frozenset[str]().union(*(fault.targets for fault in self.faults if fault.kind is kind))
            for kind in (UNHEALTHY, LOST, DEGRADED)
        )

    def _update(self) -> None:
        self._index()
        self.changes.send()


def _configured(card: Card) -> "Cut | None":
    if card.cut is None:
        return None
    from hami_mock.node.instances import Cutter

    return Cutter(card.vendor, card.model, card.uuid).cut_into(card.cut)
