"""Who holds our cards by devices of another plugin: a real one may run on the driver that we show.

Such a plugin calls a device by the UUID of a card, or of an instance that was cut out of one; where
several containers share it, with a number behind that. Pure.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from hami_mock.kubelet.holder import Holder
from hami_mock.node.cards import Card
from hami_mock.node.holders import Holding

if TYPE_CHECKING:
    from hami_mock.node.instances import Instance
    from hami_mock.node.state import NodeState

_SHARED = re.compile(r"(?P<uuid>.+?)(?:::|-)[0-9]+")
_WHOLE = 100


class _Device(NamedTuple):
    """A card, and the part of it that is meant; None: all of it."""

    card: Card
    instance: "Instance | None" = None


class ForeignDevices:
    """The cards and their instances, by what others call them."""

    def __init__(self, state: "NodeState") -> None:
        self._known = {uuid: _Device(card) for uuid, card in state.cards.items()}
        for uuid in state.cuts:
            card = state.cards[uuid]
            for instance in state.cut_out_of(card):
                self._known[instance.uuid] = _Device(card, instance)

    def holdings(self, holder: Holder) -> Iterator[tuple[str, Holding]]:
        """Yield what a container holds of each card, with the card's UUID.

        Nobody says how much of a shared card is whose: each may use all of it.
        """
        held: dict[str, list[tuple[str, _Device]]] = defaultdict(list)
        for resource, ids in holder.devices.items():
            for device in filter(None, map(self._named, ids)):
                held[device.card.uuid].append((resource, device))
        for uuid, devices in held.items():
            counts = Counter(resource for resource, _ in devices)
            parts = {each.instance.uuid: each.instance for _, each in devices if each.instance}
            instances = tuple(parts.values())
            memory, cores = devices[0][1].card.memory, _WHOLE
            if instances:
                memory = sum(each.memory for each in instances)
                cores = min(_WHOLE, sum(each.cores for each in instances))
            yield uuid, Holding(holder.container, counts, memory, cores, len(devices), instances)

    def _named(self, device_id: str) -> _Device | None:
        found = self._known.get(device_id)
        if found is None and (shared := _SHARED.fullmatch(device_id)):
            found = self._known.get(shared["uuid"])
        return found
