"""Which card a slot stands for, where HAMi's scheduler assigns the cards. Pure.

HAMi says which card a container gets, the kubelet which slot. The kubelet is steered to slots of
that card, but can't always be: it gives a container the slots that an init container had, it keeps
to the NUMA nodes that it has chosen, and nobody can tell it anything while the API server is slow.
Such a slot then stands for the assigned card, and a slot of that card that nobody holds stands in
for it. So each card has as many slots as HAMi reckons with, whichever they are: when a card fails,
the slots that stand for it fail, and the kubelet has no fewer left than HAMi has.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.devices import SlotDevices
from hami_mock.node.holdings import Parts, parts_of

if TYPE_CHECKING:
    from hami_mock.node.resources import Resource
    from hami_mock.node.state import NodeState

Held = tuple[Sequence[str], Sequence[str]]
"""A container's slots, and the UUIDs of the cards that it was assigned, one for each slot."""


def stand_ins(state: "NodeState", resource: "Resource") -> dict[str, str]:
    """Return the slots that stand for another card than their own, with that card's UUID."""
    if not isinstance(resource.devices, SlotDevices):
        return {}
    taken: set[str] = set()
    held: list[Held] = []
    # The newest first: who got a slot last has it.
    for holder in reversed(state.holders.known):
        ids = [each for each in holder.devices.get(resource.name, ()) if each not in taken]
        taken.update(ids)
        if ids and (cards := _assigned(holder, resource, state.assigned())):
            held.append((ids, cards))
    return exchanged(resource.devices, held, taken)


def exchanged(devices: SlotDevices, held: Iterable[Held], taken: Collection[str]) -> dict[str, str]:
    """Return which slots stand for which other card; `taken` are all that anybody holds."""
    found: dict[str, str] = {}
    surplus: Counter[str] = Counter()
    for ids, cards in held:
        wanted = Counter(cards)
        strays = []
        for slot in sorted(ids):
            own = _own_card(devices, slot)
            if own is not None and wanted[own] > 0:
                wanted[own] -= 1
            elif own is not None:
                strays.append((slot, own))
        for (slot, own), card in zip(strays, sorted(wanted.elements()), strict=False):
            found[slot] = card
            surplus[card] += 1
            surplus[own] -= 1
    lacking = sorted((-surplus).elements())
    for card in sorted(surplus):
        free = (slot for slot in reversed([*devices.slots(card)]) if slot not in taken)
        for slot, _ in zip(free, range(surplus[card]), strict=False):
            found[slot] = lacking.pop(0)
    return found


def container_cards(
    state: "NodeState", resource: "Resource", device_ids: Collection[str]
) -> set[str]:
    """Return the UUIDs of the cards that the container with these slots needs; none: nobody knows.

    An init container has the slots that others get after it. Which of them starts isn't told, so
    until the last such has ended the cards of all of them are needed.
    """
    assigned = state.assigned()
    for holder in reversed(state.holders.known):
        if not set(device_ids).isdisjoint(holder.devices.get(resource.name, ())):
            return {*_assigned(holder, resource, assigned), *_before(holder, resource, state)}
    return set()


def _before(holder: Holder, resource: "Resource", state: "NodeState") -> Iterable[str]:
    """Yield the cards of init containers that may be about to start with a holder's slots."""
    if holder.container is None:
        return
    namespace, name, _ = holder.container
    pod = state.pods.get((namespace, name))
    if pod is None or pod.has_begun:
        return
    for container in filter(pod.passes_on, pod.init_containers):
        for uuid, part in state.assigned().get((namespace, name, container), {}).items():
            if part.resource == resource.name:
                yield uuid


def _assigned(
    holder: Holder, resource: "Resource", assigned: Mapping[Container, Parts]
) -> list[str]:
    """Return the UUIDs of the cards that a holder was assigned, one for each of its slots."""
    count = len(holder.devices[resource.name])
    parts = parts_of(holder, assigned)
    cards = [
        uuid
        for uuid, part in parts.items()
        if part.resource == resource.name and uuid in resource.devices.counts
        for _ in range(count if resource.vendor.hami.asks_slices else part.devices)
    ]
    return cards[:count]


def _own_card(devices: SlotDevices, slot: str) -> str | None:
    """Return the card that a slot is of; None for one that is about to go."""
    uuid, is_retired = devices.owner(slot) or ("", True)
    return None if is_retired else uuid
