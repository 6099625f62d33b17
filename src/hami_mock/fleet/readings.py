"""What the cards of a fleet's nodes show, made when somebody looks.

Of nodes that nobody ever used, and where nothing is wrong, nothing is kept and nothing is made.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import ceil

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member, PodKey
from hami_mock.fleet.nodes import device_ids
from hami_mock.kubelet.holder import Holder
from hami_mock.node.cards import Card
from hami_mock.node.damage import Damage
from hami_mock.node.devices import SlotDevices
from hami_mock.node.fault import Fault
from hami_mock.node.holders import Load
from hami_mock.node.instances import Instance
from hami_mock.node.physics import Condition, Inner, Work, capacity, reading, step
from hami_mock.node.pods import Pod
from hami_mock.node.readings import Usage
from hami_mock.node.state import Health, NodeState
from hami_mock.sources.load_plan import Chooser, Held, Job, work_of
from hami_mock.vendors.physics import traits
from hami_mock.views.exporters.rows import Seen

_LONGEST_STEP = 30.0
_MOST_STEPS = 20
_WELL, _NEW = Condition(), Inner()
_NO_PODS: dict[PodKey, Pod] = {}


@dataclass(slots=True)
class _CardNow:
    """A card of a node that is or was used: who uses it, and what it remembers."""

    card: Card
    is_healthy: bool = True
    is_lost: bool = False
    condition: Condition = _WELL
    usages: tuple[Usage, ...] = ()
    jobs: tuple[Job, ...] = ()
    instances: tuple[Instance, ...] = ()
    inner: Inner = _NEW


@dataclass(slots=True)
class _Used:
    """A node that is or was used, as it was when it was looked at last."""

    cards: list[_CardNow]
    pods: dict[PodKey, Pod] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    slots: dict[tuple[PodKey, str, str], tuple[str, ...]] = field(default_factory=dict)
    """The slots that containers have, where nobody but a kubelet would have chosen them."""
    seen: float = 0.0


class Readings:
    """The nodes that are or were used, and how busy their cards are."""

    def __init__(
        self, fleet: Fleet, time_factor: float = 1.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._fleet = fleet
        self._factor = time_factor
        self._clock = clock
        self._started = clock()
        self._chooser = Chooser(0, None)
        self._used: dict[str, _Used] = {}

    def idle(self, card: Card) -> Seen:
        """Return what a card shows that nobody has ever used."""
        inner = Inner(energy=traits(card.vendor.maker, card.model).idle * self._age)
        nature = traits(card.vendor.maker, card.model)
        return Seen(card, reading(nature, card.memory, inner, Work(), Condition()), True, ())

    def is_as_new(self, member: Member) -> bool:
        """Tell whether a node's cards are as those of any other of its pool."""
        return not (member.pods or member.faults or member.name in self._used)

    def seen(self, member: Member) -> list[Seen]:
        """Return what a node's cards show now, but for lost ones."""
        name, pods = member.name, member.pods or _NO_PODS
        used = self._used.get(name)
        if used is None or used.pods != pods or used.faults is not member.faults:
            used = self._used[name] = self._look(member, used)
        now = self._age
        passed, used.seen = now - used.seen, now
        for each in used.cards:
            self._pass(each, now - passed, passed)
        return [self._show(each, now) for each in used.cards if not each.is_lost]

    def forget(self) -> None:
        """Forget nodes that aren't there any more."""
        self._used = {n: used for n, used in self._used.items() if n in self._fleet.members}

    @property
    def _age(self) -> float:
        return max(0.0, self._clock() - self._started) * self._factor

    def _look(self, member: Member, before: _Used | None) -> _Used:
        """Look at a node that has changed."""
        state = self._fleet.state(member)
        slots = before.slots if before else {}
        used = _Used([], dict(state.pods), member.faults, seen=before.seen if before else self._age)
        state.holders.name(_holders(state, slots, used.slots))
        known = {each.card.uuid: each for each in before.cards} if before else {}
        for fault in state.faults:
            for uuid in fault.targets if "xid" in fault.details else ():
                state.xids[uuid, fault.details["xid"]] += 1
        damage = Damage(state)
        damage.note()
        for card in state.node.cards:
            was = known.get(card.uuid)
            usages, health = tuple(state.usages(card)), state.health(card)
            nature = traits(card.vendor.maker, card.model)
            inner = was.inner if was else Inner(energy=nature.idle * used.seen)
            jobs = tuple(self._job(card, usage, state, was) for usage in usages)
            used.cards.append(
                _CardNow(
                    was.card if was else card,
                    health.is_usable,
                    health.health is Health.LOST,
                    damage.of(card.uuid),
                    usages,
                    jobs,
                    tuple(state.instances(card)),
                    inner,
                )
            )
        return used

    def _job(self, card: Card, usage: Usage, state: NodeState, was: _CardNow | None) -> Job:
        pod = state.pods.get(usage.container[:2])
        before = (
            job.begun for job in (was.jobs if was else ()) if job.container == usage.container
        )
        begun = next(before, None)
        if begun is None:
            ago = self._clock() - pod.started if pod and pod.started else 0.0
            begun = self._age - max(0.0, ago)
        held = (each.container for of in state.holdings().values() for each in of)
        is_linked = card.link is not None and [*held].count(usage.container) > 1
        default = self._fleet.members[state.node.name].pool.settings.load
        return self._chooser.job(Held(card, usage, pod, begun, is_linked), default)

    def _pass(self, each: _CardNow, since: float, seconds: float) -> None:
        """Let time pass on a card, in steps in which its work stays the same."""
        nature = traits(each.card.vendor.maker, each.card.model)
        steps = min(_MOST_STEPS, max(1, ceil(seconds / _LONGEST_STEP))) if each.jobs else 1
        for number in range(1, steps + 1):
            work = _work(each, since + seconds * number / steps)[0]
            each.inner = step(nature, each.inner, work, each.condition.trouble, seconds / steps)

    def _show(self, each: _CardNow, now: float) -> Seen:
        nature = traits(each.card.vendor.maker, each.card.model)
        work, loads = _work(each, now)
        shown = reading(nature, each.card.memory, each.inner, work, each.condition)
        usages = tuple(
            Usage(u.container, load, u.memory_limit, u.cores_limit, u.slots, u.instances, u.owner)
            for u, load in zip(each.usages, loads, strict=True)
        )
        return Seen(each.card, shown, each.is_healthy, usages, each.instances)


def _work(each: _CardNow, now: float) -> tuple[Work, list[Load]]:
    nature = traits(each.card.vendor.maker, each.card.model)
    room = capacity(nature, each.card.memory)
    return work_of(each.jobs, now, room, is_stopped=each.condition.trouble.stopped)


_Slots = dict[tuple[PodKey, str, str], tuple[str, ...]]


def _holders(state: NodeState, before: _Slots, kept: _Slots) -> Iterator[Holder]:
    """Yield who holds devices: of HAMi's pods it says which; to others slots are given here.

    `kept` gets these: what a container has it keeps until it ends.
    """
    assigned = state.assigned()
    taken = {slot for key, slots in before.items() if key[0] in state.pods for slot in slots}
    for key, pod in state.pods.items():
        for name in pod.containers:
            container = (*key, name)
            devices: dict[str, tuple[str, ...]] = {}
            for resource in state.node.resources:
                count = pod.requests.get(name, {}).get(resource.name, 0)
                if not count or not resource.has_slots:
                    continue
                if container in assigned:
                    devices[resource.name] = device_ids(pod, container, count)
                    continue
                at = key, name, resource.name
                own = before.get(at) or tuple(_free(state, resource.name, taken, count))
                taken.update(own)
                kept[at] = devices[resource.name] = own
            if devices:
                yield Holder(container, devices)


def _free(state: NodeState, resource_name: str, taken: set[str], count: int) -> Iterator[str]:
    """Yield slots that nobody has, each on another card as long as there are some."""
    resource = state.resources[resource_name]
    assert isinstance(resource.devices, SlotDevices), "it has slots"
    free = {
        card.uuid: [slot for slot in resource.devices.slots(card.uuid) if slot not in taken]
        for card in resource.cards
        if state.health(card).is_usable
    }
    for _ in range(count):
        most = max(free.values(), key=len, default=[])
        if not most:
            return
        yield most.pop(0)
