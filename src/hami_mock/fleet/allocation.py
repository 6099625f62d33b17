"""How much of a node pods have: memory, slots and cores, as the scheduler counts them. Pure.

Where HAMi's scheduler has assigned cards, its annotation says how much of them; it counts 4,000 MiB
of two cards twice. Else a pod has what it asks for, as kube-scheduler counts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hami_mock.fleet.nodes import models_of, node_of
from hami_mock.hami.assignment import Assignment
from hami_mock.hami.errors import Malformed
from hami_mock.node.assigned import percent_of
from hami_mock.node.cards import Card
from hami_mock.node.pods import Pod
from hami_mock.node.resources import Resource
from hami_mock.settings.pools import Pool
from hami_mock.vendors import Role
from hami_mock.vendors.hami_vendor import HamiVendor


class Amounts(NamedTuple):
    """MiB of memory, slots, and percent of a card's cores; of a node, a pool or a pod."""

    memory: int = 0
    slots: int = 0
    cores: int = 0

    def plus(self, other: "Amounts", times: int = 1) -> "Amounts":
        return Amounts(
            self.memory + times * other.memory,
            self.slots + times * other.slots,
            self.cores + times * other.cores,
        )


NOTHING = Amounts()


class _Counted(NamedTuple):
    """A resource that is counted: which of the amounts it is, and what all of it comes to."""

    name: str
    role: Role
    amount: str
    units: int
    whole: int


class _Assigned(NamedTuple):
    """Cards that HAMi's scheduler assigns: the annotation on pods, and who else counts them."""

    annotation: str
    vendor: HamiVendor
    card: Card
    names: frozenset[str]


@dataclass(frozen=True)
class Shape:
    """What every node of a pool has to give, where nothing is wrong with it.

    `models` says how many cards of which model.
    """

    cards: int
    models: Mapping[str, int]
    whole: Amounts
    counted: tuple[_Counted, ...]
    assigned: tuple[_Assigned, ...]

    @classmethod
    def of(cls, pool: Pool) -> "Shape":
        node = node_of(pool, 0)
        counted = tuple(map(_counted, node.resources))
        whole: Counter[str] = Counter()
        for each in counted:
            # A percentage is another way to ask for what is counted already.
            if each.role is not Role.PERCENTAGE:
                whole[each.amount] += each.whole
        assigned = tuple(_assigned(each) for each in node.resources if each.hami)
        return cls(len(node.cards), models_of(node), Amounts(**whole), counted, assigned)

    def used_by(self, pod: Pod) -> Amounts:
        """Return what a pod has of the node."""
        if pod.is_over:
            return NOTHING
        used, told = NOTHING, frozenset[str]()
        for each in self.assigned:
            text = pod.annotations.get(each.annotation)
            if text and (devices := _read(text, each)):
                used, told = used.plus(devices), told | each.names
        asked = [each for each in self.counted if each.name not in told] if pod.requests else []
        return used.plus(_asked(pod, asked)) if asked else used


def asked_for(pods: Iterable[Pod]) -> Counter[str]:
    """Return how much of each resource pods ask for that aren't over, as kube-scheduler counts."""
    asked: Counter[str] = Counter()
    for pod in pods:
        if not pod.is_over:
            names = {name for of_container in pod.requests.values() for name in of_container}
            asked.update({name: pod.asks_for(name) for name in names})
    return asked


def _asked(pod: Pod, counted: Iterable[_Counted]) -> Amounts:
    asked: Counter[str] = Counter()
    percentages: Counter[str] = Counter()
    for each in counted:
        kind = percentages if each.role is Role.PERCENTAGE else asked
        kind[each.amount] += pod.asks_for(each.name) * each.whole // max(each.units, 1)
    # As with HAMi, MiB count more than percent.
    return Amounts(**{key: asked[key] or percentages[key] for key in Amounts._fields})


def _counted(resource: Resource) -> _Counted:
    role, count, cards = resource.offer.role, resource.count, resource.cards
    match role:
        case Role.SLOTS:
            amount, whole = "slots", count
        case Role.MEMORY:
            amount, whole = "memory", count * resource.factor
        case Role.PERCENTAGE:
            amount, whole = "memory", sum(card.memory for card in cards)
        case Role.CORES:
            # However many cores a card has, they are a hundred percent.
            are_percent = resource.offer.per_card == 100
            amount, whole = "cores", count if are_percent else 100 * len(cards)
    return _Counted(resource.name, role, amount, count, whole)


def _assigned(resource: Resource) -> _Assigned:
    assert resource.hami is not None, "so it was chosen"
    vendor = resource.hami.vendor
    names = frozenset({resource.name, *map(vendor.resources.of, Role)})
    return _Assigned(vendor.pods.allocated, vendor, resource.cards[0], names)


def _read(text: str, of: _Assigned) -> Amounts | None:
    """Return what an annotation comes to; None: it can't be read, as HAMi couldn't."""
    try:
        assignment = Assignment.parse(text)
    except Malformed:
        return None
    memory = slots = cores = 0
    for devices in assignment.containers:
        for device in devices:
            memory += device.memory if device.memory > 0 else of.card.memory
            cores += percent_of(device, of.card, of.vendor)
            slots += 1
    return Amounts(memory, slots, cores)
