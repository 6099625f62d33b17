"""A node with readings and holders that a test decides on."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from hami_mock.kubelet.holder import Container
from hami_mock.node.cards import Card
from hami_mock.node.holders import Load
from hami_mock.node.instances import Instance
from hami_mock.node.readings import Reading, Usage
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.vendors import Vendor
from tests.makers import NVIDIA
from tests.unit.builders import NODE, cards

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class ShownState(NodeState):
    """A state whose cards are held by whom the test says."""

    def __init__(self, of: Sequence[Card]) -> None:
        super().__init__(Node(NODE, tuple(of), ()))
        self.held: dict[str, list[Usage]] = defaultdict(list)
        self.readings = {card.uuid: reading(card) for card in of}

    def usages(self, card: Card) -> list[Usage]:
        return self.held[card.uuid]

    def held_instances(self, card: Card) -> list[Instance]:
        return [instance for usage in self.held[card.uuid] for instance in usage.instances]

    def hold(
        self,
        card: Card,
        container: Container,
        busy: int = 50,
        memory: int = 1024,
        instances: tuple[Instance, ...] = (),
    ) -> None:
        load = Load(busy, memory)
        self.held[card.uuid].append(Usage(container, load, 8192, 50, instances=instances))
        self.loads[card.uuid, container] = load


def shown(count: int = 2, vendor: Vendor = NVIDIA) -> ShownState:
    return ShownState(cards(count, vendor))


def instance(number: int, memory: int = 5000, cores: int = 20) -> Instance:
    """Return a part of a card that begins at that unit."""
    return Instance(f"MIG-{number}", "1g.5gb", memory, cores, number, 7 + number)


def crowded(card_count: int, containers: int) -> ShownState:
    """Return a node on each of whose cards there are so many containers."""
    state = shown(card_count)
    for card in state.node.cards:
        for number in range(containers):
            container = (f"team-{number % 7}", f"trainer-{card.index}-{number}", "main")
            state.hold(card, container, number % 100, 100 + number)
    return state


def reading(card: Card, **values: Any) -> Reading:
    """Return what a card shows that is half busy."""
    usual: dict[str, Any] = {
        "busy": 55.4,
        "memory_busy": 5.0,
        "memory_used": 4096,
        "memory_reserved": 512,
        "memory_free": card.memory - 4096 - 512,
        "power": 180.25,
        "power_limit": 300.0,
        "energy": 123_456_789_012,
        "temperature": 47.6,
        "memory_temperature": 51.0,
        "fan": None,
        "sm_clock": 1380,
        "memory_clock": 877,
        "tensor": 0.25,
        "dram": 0.125,
        "pcie_sent": 1e6,
        "pcie_received": 2e6,
        "nvlink_bytes": 2048,
        "nvlink_speed": 180e9,
    }
    return Reading(**usual | values)


def samples(text: str) -> Samples:
    """Return what the official parser reads; a row that is there twice is a mistake."""
    found: Samples = {}
    families: set[str] = set()
    for family in text_string_to_metric_families(text):
        assert family.name not in families, family.name
        assert family.documentation, family.name
        assert family.type in ("gauge", "counter"), family.name
        families.add(family.name)
        for sample in family.samples:
            # DCGM's counters have no suffix; the parser gives them one.
            name = sample.name.removesuffix("_total")
            key = name, tuple(sorted(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def named(found: Samples, name: str) -> list[tuple[dict[str, str], float]]:
    return [(dict(labels), value) for (of, labels), value in found.items() if of == name]
