"""Which cards of one node a container gets, by HAMi's rules, or why it gets none."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import combinations
from typing import NamedTuple

from hami_mock.hami.mig import MigProfile
from hami_mock.whatif.card_model import CardKind, Cards
from hami_mock.whatif.requests import Share
from hami_mock.whatif.rules import CardPolicy

NO_DEVICE = "NodeInsufficientDevice"
TOO_FEW = "AllocatedCardsInsufficientRequest"
TYPE = "CardTypeMismatch"
UUID = "CardUuidMismatch"
SLOTS = "CardTimeSlicingExhausted"
MEMORY = "CardInsufficientMemory"
CORES = "CardInsufficientCore"
EXCLUSIVE = "ExclusiveDeviceAllocateConflict"
FULL = "CardComputeUnitsExhausted"
INSTANCES = "CardMigTopologyInfeasible"
NUMA = "NumaNotFit"
_ALL = 100


Pairs = Mapping[int, Mapping[int, int]]


class Instance(NamedTuple):
    """An instance of a card that is cut: its profile, and the units of memory that it stands on."""

    profile: MigProfile
    bits: int


@dataclass(slots=True)
class Card:
    """A card of the node, and what is left of it."""

    at: int
    number: int
    numa: int
    kind: CardKind
    kind_number: int
    memory: int
    cores: int
    slots: int
    occupied: int

    @property
    def is_used(self) -> bool:
        return self.slots < self.kind.slots

    def share(self) -> float:
        """Return how full it is, as the scheduler scores cards."""
        kind = self.kind
        if not (kind.slots and kind.cores and kind.memory):
            return 0.0
        return (
            (kind.slots - self.slots) / kind.slots
            + (kind.cores - self.cores) / kind.cores
            + (kind.memory - self.memory) / kind.memory
        )


class Taken(NamedTuple):
    """What a pod takes of a card; of one that is cut, where its instances stand and compute."""

    at: int
    number: int
    memory: int
    cores: int
    slots: int = 1
    bits: int = 0
    compute: int = 0
    profile: str = ""


@dataclass(frozen=True)
class Wishes:
    """Which of a vendor's cards a pod takes: of which kinds, and which at all (None: any).

    `shares` has for each kind what is taken of such a card; None: it isn't wanted.
    """

    policy: CardPolicy
    shares: tuple[Share | None, ...]
    places: frozenset[int] | None = None
    is_numa_bound: bool = False
    has_pairs: bool = False


@dataclass
class Fit:
    """The cards that a container gets; none: `reasons` has the number of cards for each."""

    taken: list[Taken] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)


def cards_on(cards: Cards, node: int) -> list[Card]:
    places = cards.on(node)
    rows = slice(places.start, places.stop)
    columns = (cards.number, cards.numa, cards.kind, cards.memory, cards.cores, cards.slots)
    listed = [column[rows].tolist() for column in (*columns, cards.occupied)]
    return [
        Card(at, number, numa, cards.kinds[kind], kind, memory, cores, slots, occupied)
        for at, number, numa, kind, memory, cores, slots, occupied in zip(
            places, *listed, strict=True
        )
    ]


def instance_for(kind: CardKind, occupied: int, memory: int) -> Instance | None:
    """Return the smallest instance with so much memory that still has a place on a card."""
    return next(
        (
            each
            for each in instances(kind)
            if each.profile.memory >= memory and not each.bits & occupied
        ),
        None,
    )


def instances(kind: CardKind) -> tuple[Instance, ...]:
    """Return all that a card can be cut into, in the order in which the scheduler tries them."""
    return _instances(kind.profiles)


@cache
def _instances(profiles: tuple[MigProfile, ...]) -> tuple[Instance, ...]:
    found: list[Instance] = []
    for profile in sorted(profiles, key=lambda each: (each.memory, each.slices)):
        # Small ones and halves are put at the end of the card, so that others have room before.
        is_last_first = profile.name.startswith(("1g.", "3g."))
        places = sorted(profile.placements, key=lambda each: each.start, reverse=is_last_first)
        found += [Instance(profile, ((1 << each.size) - 1) << each.start) for each in places]
    return tuple(found)


def refusal(card: Card, wishes: Wishes) -> tuple[str, Share | None]:
    """Return why a card can't be had, "" if it can, and what would be taken of it."""
    if (share := wishes.shares[card.kind_number]) is None:
        return TYPE, None
    if wishes.places is not None and card.at not in wishes.places:
        return UUID, None
    if card.slots < share.slots:
        return SLOTS, None
    if wishes.policy is CardPolicy.MUTEX and card.is_used:
        return EXCLUSIVE, None
    return _room(card, share), share


def _room(card: Card, share: Share) -> str:
    kind = card.kind
    if card.memory < share.memory:
        return MEMORY
    if card.cores < share.cores:
        return CORES
    if kind.cores == _ALL == share.cores and card.is_used:
        return EXCLUSIVE
    if kind.cores and not card.cores and not share.cores:
        return FULL
    if kind.profiles and not instance_for(kind, card.occupied, share.memory):
        return INSTANCES
    return ""


def fit(cards: Sequence[Card], count: int, wishes: Wishes, pairs: Pairs) -> Fit:
    """Choose so many cards and take shares of them; take nothing if there are too few.

    `cards` are the vendor's on the node; with the topology policy `pairs` says by their numbers how
    well they are connected.
    """
    is_cut = any(card.kind.profiles for card in cards)
    if count > len(cards) and not is_cut:
        return Fit(reasons=Counter({NO_DEVICE: 1}))
    by_pairs = wishes.policy is CardPolicy.TOPOLOGY and wishes.has_pairs and not is_cut
    reasons: Counter[str] = Counter()
    chosen: list[tuple[Card, Taken]] = []
    for card in ordered(cards, wishes):
        is_enough = len(chosen) >= count
        if is_enough and not by_pairs:
            break
        if wishes.is_numa_bound and chosen and card.numa != chosen[0][0].numa:
            if is_enough:
                break
            reasons[NUMA] += len(chosen)
            chosen = _without(chosen)
        wanted = count - len(chosen) if card.kind.profiles else 1
        chosen += _shares(card, wishes, wanted, reasons)
    if len(chosen) > count:
        numbers = _best([card.number for card, _ in chosen], count, pairs)
        _without([each for each in chosen if each[0].number not in numbers])
        chosen = [each for each in chosen if each[0].number in numbers]
    if len(chosen) == count:
        return Fit([taken for _, taken in chosen])
    if chosen:
        reasons[TOO_FEW] = len(chosen)
        _without(chosen)
    return Fit(reasons=reasons)


def _shares(
    card: Card, wishes: Wishes, wanted: int, reasons: Counter[str]
) -> Iterator[tuple[Card, Taken]]:
    """Take up to so many shares of a card, and count why there aren't more."""
    for _ in range(wanted):
        reason, share = refusal(card, wishes)
        if share is None or reason:
            reasons[reason] += 1
            return
        yield card, take(card, share)


def take(card: Card, share: Share) -> Taken:
    """Take a share of a card; of one that is cut, the instance that it fits into."""
    taken = Taken(card.at, card.number, share.memory, share.cores, share.slots)
    if instance := instance_for(card.kind, card.occupied, share.memory):
        profile = instance.profile
        taken = taken._replace(
            memory=profile.memory,
            # The percents of instances are rounded: those of all together can be over 100.
            cores=min(profile.cores, card.cores),
            bits=instance.bits,
            compute=profile.slices,
            profile=profile.name,
        )
    _change(card, taken, -1)
    return taken


def _without(chosen: Sequence[tuple[Card, Taken]]) -> list[tuple[Card, Taken]]:
    for card, taken in chosen:
        _change(card, taken, 1)
    return []


def _change(card: Card, taken: Taken, sign: int) -> None:
    card.memory += sign * taken.memory
    card.cores += sign * taken.cores
    card.slots += sign * taken.slots
    card.occupied ^= taken.bits


def _best(numbers: Sequence[int], count: int, pairs: Pairs) -> Sequence[int]:
    """Return the best connected cards, or for one the worst: the others stay together."""
    if count == 1:
        return [min(numbers, key=lambda one: sum(pairs[one].get(peer, 0) for peer in numbers))]
    rows = tuple(tuple(pairs[one].get(peer, 0) for peer in numbers) for one in numbers)
    return [numbers[place] for place in _best_places(rows, count)]


@lru_cache(10_000)  # nodes of a pool have the same free cards again and again
def _best_places(rows: tuple[tuple[int, ...], ...], count: int) -> tuple[int, ...]:
    return max(
        combinations(range(len(rows)), count),
        key=lambda some: sum(rows[a][b] for a, b in combinations(some, 2)),
    )


def ordered(cards: Sequence[Card], wishes: Wishes) -> list[Card]:
    """Return cards in the order in which the scheduler tries them; of equals the first."""
    is_binpack = wishes.policy is CardPolicy.BINPACK
    sign = -1 if is_binpack else 1
    if wishes.is_numa_bound:
        return sorted(cards, key=lambda card: (-sign * card.numa, sign * card.share(), card.number))
    if wishes.policy is CardPolicy.MUTEX:
        return sorted(
            cards, key=lambda card: (card.kind.slots - card.slots, -card.numa, card.number)
        )
    return sorted(cards, key=lambda card: (sign * card.share(), -card.numa, card.number))
