"""A fleet kept in plain Python, which shares no code with the placer: is an outcome possible?

It knows NVIDIA's cards that are sliced by HAMi, and pods with one container.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hami_mock.settings.pools import Pool
from hami_mock.whatif.demand import PodKind
from hami_mock.whatif.outcome import Placement

GPU, MEMORY, CORES, PERCENT = (
    f"nvidia.com/gpu{end}" for end in ("", "mem", "cores", "mem-percentage")
)


@dataclass
class SlowCard:
    whole: int
    memory: int
    cores: int = 100
    slots: int = 10
    sharers: int = 0


@dataclass
class SlowNode:
    cpu: int
    ram: int
    pods: int
    cards: list[SlowCard]
    size: tuple[int, int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.size = self._sums()

    def _sums(self) -> tuple[int, int, int]:
        return (
            sum(each.slots for each in self.cards),
            sum(each.cores for each in self.cards),
            sum(each.memory for each in self.cards),
        )

    @property
    def fullness(self) -> float:
        left = self._sums()
        return sum(1 - a / b for a, b in zip(left, self.size, strict=True)) if self.size[0] else 0.0

    def takes(self, kind: PodKind) -> bool:
        (container,) = kind.containers
        asks = container.asks
        if asks.get("cpu", 0) > self.cpu or asks.get("memory", 0) > self.ram or not self.pods:
            return False
        return sum(can_have(card, asks) for card in self.cards) >= cards_of(asks)


def cards_of(asks: Mapping[str, int]) -> int:
    """Who asks for a part of a card, but for none, gets one from HAMi's webhook."""
    return asks.get(GPU) or int(any(asks.get(each) for each in (MEMORY, CORES, PERCENT)))


def can_have(card: SlowCard, asks: Mapping[str, int]) -> bool:
    memory, cores = share(card, asks)
    if card.slots < 1 or card.memory < memory or card.cores < cores:
        return False
    # Who wants all cores wants to be alone, and where all are taken nobody gets none.
    return not (cores == 100 and card.sharers) and not (cores == 0 and card.cores == 0)


def share(card: SlowCard, asks: Mapping[str, int]) -> tuple[int, int]:
    """MiB and percent that a container takes of a card that was empty once."""
    if asks.get(MEMORY):
        return asks[MEMORY], asks.get(CORES, 0)
    percent = asks.get(PERCENT) or 100
    return card.whole * percent // 100, asks.get(CORES, 100 if percent == 100 else 0)


class SlowFleet:
    """All nodes by name. Pods are put where an outcome says."""

    def __init__(self, pools: tuple[Pool, ...]) -> None:
        self.nodes: dict[str, SlowNode] = {}
        for pool in pools:
            (nvidia,) = (each for each in pool.settings.vendors if each.vendor.name == "nvidia")
            sizes = [group.memory for group in nvidia.groups for _ in range(group.cards)]
            for name in pool.node_names:
                cards = [SlowCard(memory, memory) for memory in sizes]
                self.nodes[name] = SlowNode(pool.cpu, pool.memory, pool.max_pods, cards)

    def put(self, placement: Placement, kind: PodKind) -> None:
        """Put a pod where it is said to be; what has no room there fails the test."""
        node = self.nodes[placement.node]
        (container,) = kind.containers
        assert node.takes(kind)
        assert len({each.card for each in placement.cards}) == cards_of(container.asks)
        for each in placement.cards:
            card = node.cards[each.card]
            assert can_have(card, container.asks)
            memory, cores = share(card, container.asks)
            assert (each.memory, each.cores, each.slots) == (memory, cores, 1)
            card.memory -= memory
            card.cores -= cores
            card.slots -= 1
            card.sharers += 1
        node.cpu -= container.asks.get("cpu", 0)
        node.ram -= container.asks.get("memory", 0)
        node.pods -= 1

    def take_away(self, placement: Placement, kind: PodKind) -> None:
        node = self.nodes[placement.node]
        asks = kind.containers[0].asks
        for each in placement.cards:
            card = node.cards[each.card]
            card.memory += each.memory
            card.cores += each.cores
            card.slots += 1
            card.sharers -= 1
        node.cpu += asks.get("cpu", 0)
        node.ram += asks.get("memory", 0)
        node.pods += 1

    def takes(self, kind: PodKind) -> list[str]:
        return [name for name, node in self.nodes.items() if node.takes(kind)]
