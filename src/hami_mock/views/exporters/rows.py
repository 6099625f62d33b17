"""Cards and containers as all exporters see them: in one place, so that their numbers agree."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hami_mock.kit.text import cut
from hami_mock.kubelet.holder import Container
from hami_mock.node.cards import Card
from hami_mock.node.instances import Instance
from hami_mock.node.physics import instance_reading
from hami_mock.node.pods import Pod
from hami_mock.node.readings import Reading, Usage
from hami_mock.node.state import Health, NodeState
from hami_mock.vendors.exporter import Exporter


class Seen(NamedTuple):
    """A card that can be seen now, and the containers that hold it."""

    card: Card
    reading: Reading
    is_healthy: bool
    usages: Sequence[Usage]
    instances: Sequence[Instance] = ()


@dataclass(slots=True)
class Row:
    """What one row of a metric is about.

    - usage: the container; of a card's row the only one that holds it, None if there isn't just one
    - number: which of the container's cards it is, or which of the card's holders the container is
    - instance: the part of the card that it is about, if not all of it
    - idle: seconds since the container has last worked; None if it never has
    """

    card: Card
    reading: Reading
    is_healthy: bool
    usage: Usage | None = None
    number: int = 0
    pod_uid: str = ""
    idle: float | None = None
    instance: Instance | None = None

    @property
    def place(self) -> tuple[object, ...]:
        """What the row's labels are made from, and whether it has values that some rows lack."""
        usage = self.usage
        container = usage.container if usage else None
        return self.card, container, self.number, self.pod_uid, self.instance, self.idle is None


def observe(state: NodeState) -> list[Seen]:
    """Return the cards that show something: not those that are lost, or not read yet."""
    found, readings = [], state.readings
    for card in state.node.cards:
        reading, health = readings.get(card.uuid), state.health(card)
        if reading is not None and health.health is not Health.LOST:
            usages, instances = state.usages(card), state.instances(card)
            found.append(Seen(card, reading, health.is_usable, usages, instances))
    return found


def instance_rows(seen: Sequence[Seen]) -> list[Row]:
    """Return a row for each instance of the cards that are cut, with what it shows by itself."""
    found = []
    for card, whole, healthy, usages, instances in seen:
        holders = {each.uuid: usage for usage in usages for each in usage.instances}
        for instance in instances:
            usage = holders.get(instance.uuid)
            number = usage.instances.index(instance) if usage else 0
            reading = instance_reading(whole, instance, usage)
            found.append(Row(card, reading, healthy, usage, number, instance=instance))
    return found


def card_rows(seen: Sequence[Seen]) -> list[Row]:
    return [
        Row(card, reading, healthy, usages[0] if len(usages) == 1 else None)
        for card, reading, healthy, usages, _ in seen
    ]


def shared_rows(seen: Sequence[Seen]) -> Iterator[Row]:
    """Yield a row for each holder of a card, numbered by the slots that they hold."""
    for card, reading, healthy, usages, _ in seen:
        first = 0
        for usage in usages:
            yield Row(card, reading, healthy, usage, first)
            first += max(usage.slots, 1)
        if not usages:
            yield Row(card, reading, healthy)


def container_rows(
    seen: Sequence[Seen],
    pods: Mapping[tuple[str, str], Pod],
    idle: Mapping[tuple[str, Container], float] | None = None,
) -> list[Row]:
    """Return a row for each card of each container; `idle` tells how long each has been."""
    held: Counter[Container] = Counter()
    found = []
    for card, reading, healthy, usages, _ in seen:
        for usage in usages:
            container = usage.container
            pod = pods.get(container[:2])
            resting = idle.get((card.uuid, container)) if idle else None
            uid = pod.uid if pod else ""
            found.append(Row(card, reading, healthy, usage, held[container], uid, resting))
            held[container] += 1
    return found


def exporter_of(card: Card) -> Exporter | None:
    return card.vendor.exporter() if card.vendor.exporter else None


def card_fields(card: Card, node_name: str, driver: str) -> dict[str, str]:
    """Return what labels of a card's rows are made from."""
    exporter = exporter_of(card)
    monitored_as = exporter.monitored_as if exporter else ""
    fields = {
        "index": str(card.index),
        "minor": str(card.minor),
        "uuid": card.uuid,
        "bus": card.pci_bus_id,
        "product": card.model.product,
        "model": card.model.name,
        "serial": card.serial,
        "node": node_name,
        "driver": driver,
        "monitored_as": monitored_as.format(product=card.model.product),
    }
    return {name: cut(text) for name, text in fields.items()}


def container_fields(row: Row) -> dict[str, str]:
    namespace, pod, container = row.usage.container if row.usage else ("", "", "")
    return {
        "namespace": cut(namespace),
        "pod": cut(pod),
        "container": cut(container),
        "pod_uid": cut(row.pod_uid),
        "number": str(row.number),
        **(_instance_fields(row.instance) if row.instance else {}),
    }


def _instance_fields(instance: Instance) -> dict[str, str]:
    return {
        "mig_uuid": instance.uuid,
        "profile": instance.profile,
        "gpu_instance": str(instance.gpu_instance),
        "compute_instance": str(instance.compute_instance),
    }
