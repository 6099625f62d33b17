"""A fleet as arrays: of its nodes, and of the cards that HAMi's scheduler sees on them.

What a pool's nodes carry is made once, by the same functions as on a real node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hami_mock.fleet.nodes import labels_of, node_of
from hami_mock.hami import scores
from hami_mock.kit.files import read_text
from hami_mock.node.cards import Card, card_uuid
from hami_mock.node.hami_side import HamiSide
from hami_mock.node.labels import node_labels
from hami_mock.node.resources import Resource
from hami_mock.settings.pools import Pool
from hami_mock.settings.settings import load_pools
from hami_mock.settings.vendor_settings import VendorSettings
from hami_mock.vendors import Role
from hami_mock.vendors.hami_vendor import HamiVendor, ResourceNames
from hami_mock.views.hami.registration import registered
from hami_mock.whatif.arrays import Whole, np
from hami_mock.whatif.card_model import CardKind, Cards, PoolCard, joined
from hami_mock.whatif.demand import CPU, RAM
from hami_mock.whatif.rules import CardPolicy, Rules
from hami_mock.whatif.trace import is_table, read_nodes

PODS = "pods"
FLEET = "what-if"


class PoolModel(NamedTuple):
    """What each node of a pool has; `cards` by vendor, `resources` as the Node shows them."""

    pool: Pool
    vendors: Mapping[str, HamiVendor]
    cards: Mapping[str, tuple[PoolCard, ...]]
    resources: Mapping[str, int]
    labels: Mapping[str, str]


class Saved(NamedTuple):
    """What was left of each resource on the nodes, and of each vendor's cards."""

    left: Mapping[str, Whole]
    cards: Mapping[str, Mapping[str, Whole]]


@dataclass
class Cluster:
    """The nodes of some pools, and what is left of each resource on them."""

    models: tuple[PoolModel, ...]

    def __post_init__(self) -> None:
        sizes = [model.pool.nodes for model in self.models]
        self.size = sum(sizes)
        self.pool = np.repeat(np.arange(len(sizes)), sizes)
        self.first = np.concatenate(([0], np.cumsum(sizes)))[:-1]
        self.all: dict[str, Whole] = {}
        names = [CPU, RAM, PODS, *(name for model in self.models for name in model.resources)]
        for name in dict.fromkeys(names):
            each = [
                _shared(model.pool).get(name, model.resources.get(name, 0)) for model in self.models
            ]
            self.all[name] = np.repeat(np.array(each, dtype=np.int64), sizes)
        self.left = {name: amounts.copy() for name, amounts in self.all.items()}
        self.cards = {each.vendor.word: each for each in _all_cards(self.models, self.first)}

    def saved(self) -> Saved:
        """Return what is left of everything, for `restore`."""
        cards = {word: cards.saved() for word, cards in self.cards.items()}
        return Saved({name: amounts.copy() for name, amounts in self.left.items()}, cards)

    def restore(self, saved: Saved) -> None:
        self.left.update(saved.left)
        for word, cards in saved.cards.items():
            self.cards[word].restore(cards)

    def name(self, node: int) -> str:
        return self.pool_of(node).node_name(self.index(node))

    def pool_of(self, node: int) -> Pool:
        return self.models[int(self.pool[node])].pool

    def index(self, node: int) -> int:
        """Return a node's number in its pool."""
        return int(node - self.first[self.pool[node]])

    def node_named(self, name: str) -> int | None:
        for number, model in enumerate(self.models):
            index = model.pool.index_of(name)
            if index is not None and index < model.pool.nodes:
                return int(self.first[number]) + index
        return None

    def labels(self, node: int) -> dict[str, str]:
        model = self.models[int(self.pool[node])]
        return {**model.labels, **labels_of(model.pool, self.index(node), FLEET)}

    @property
    def vendors(self) -> list[HamiVendor]:
        return [cards.vendor for cards in self.cards.values()]

    def card_ids(self, cards: Cards) -> Iterator[str]:
        """Yield the UUIDs of a vendor's cards, which take long to make."""
        for node, number in zip(cards.node.tolist(), cards.number.tolist(), strict=True):
            yield card_uuid(self.name(node), cards.vendor.vendor, number)


def load_fleet(path: str, rules: Rules) -> tuple[Pool, ...]:
    """Return the pools of a file, with HAMi's resources: a list of nodes if it is called .csv.

    Without HAMi's scheduler they are the same, so that one can compare. Raises UsageError.
    """
    flags = {"hami": "on"}
    if rules.cards is CardPolicy.TOPOLOGY:
        flags["hami-topology-score"] = "on"
    text = read_text("can't read the fleet", path)
    return load_pools(path, flags, read_nodes(path, text) if is_table(path) else text)


def cluster_of(pools: Iterable[Pool]) -> Cluster:
    """Return an empty cluster of the nodes of pools."""
    return Cluster(tuple(_model(pool) for pool in pools if pool.nodes))


def _model(pool: Pool) -> PoolModel:
    node, settings = node_of(pool, 0), pool.settings
    sides = [(resource, resource.hami) for resource in node.resources if resource.hami]
    cards = {side.vendor.word: tuple(_cards(resource, side)) for resource, side in sides}
    called = {each.vendor.name: _names(each) for each in settings.vendors}
    vendors = {
        side.vendor.word: replace(side.vendor, resources=called[side.vendor.vendor.name])
        for _, side in sides
        if cards[side.vendor.word]
    }
    resources = {resource.name: resource.count for resource in node.resources}
    labels = node_labels(node, settings.labels, 0, settings.driver_version)
    return PoolModel(pool, vendors, cards, resources, labels)


def _names(settings: VendorSettings) -> ResourceNames:
    """Return what a vendor's resources are called here, and how large their units are."""
    known = settings.vendor.offer(Role.MEMORY)
    names = {role: named.name for role, named in settings.names.items()}
    default = settings.hami.vendor.resources if settings.hami else ResourceNames("")
    return ResourceNames(
        names.get(Role.SLOTS, ""),
        names.get(Role.MEMORY, ""),
        (settings.memory_factor or 1) * known.memory_unit if known else 1,
        names.get(Role.CORES, ""),
        default.cores_per_card,
        names.get(Role.PERCENTAGE, ""),
    )


def _cards(resource: Resource, side: HamiSide) -> Iterator[PoolCard]:
    known = side.vendor.scheduling
    pairs: Mapping[str, Mapping[str, int]] = {}
    if known.scores and side.has_scores:
        pairs = scores.decode(known.scores.make(resource.cards))
    numbers = {card.uuid: card.index for card in resource.cards}
    for card in resource.cards:
        if kind := _kind(card, side):
            own = {numbers[peer]: score for peer, score in pairs.get(card.uuid, {}).items()}
            yield PoolCard(kind, card.index, card.numa or 0, own)


def _kind(card: Card, side: HamiSide) -> CardKind | None:
    seen = registered(card, side, healthy=True)
    if seen is None:
        return None
    # Without an annotation the scheduler reckons a card from what the node has of each resource.
    is_told = side.vendor.node.encoding is not None
    cores = seen.cores if is_told else side.vendor.resources.cores_per_card
    return CardKind(seen.type, seen.mode, seen.memory, cores, seen.count, seen.mig_profiles)


def _all_cards(models: Sequence[PoolModel], first: Whole) -> Iterator[Cards]:
    known = {word: vendor for model in models for word, vendor in model.vendors.items()}
    for word, vendor in known.items():
        own = [(n, model) for n, model in enumerate(models) if word in model.vendors]
        yield joined(
            vendor,
            [(n, first[n] + np.arange(model.pool.nodes), model.cards[word]) for n, model in own],
        )


def _shared(pool: Pool) -> dict[str, int]:
    return {CPU: pool.cpu, RAM: pool.memory, PODS: pool.max_pods}
