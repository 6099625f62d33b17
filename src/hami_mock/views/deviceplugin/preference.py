"""Which slots a container should get: GetPreferredAllocation as a function. Pure.

Slots of one container come from different cards for as long as there are any, from cards linked to
each other first. Where somebody has assigned cards to it, their slots come before all others. The
answer depends on the sets asked about alone, not on their order.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from hami_mock.errors import DeviceError
from hami_mock.node.cards import Card
from hami_mock.node.resources import Resource


def prefer(
    resource: Resource,
    available: Collection[str],
    must_include: Collection[str],
    size: int,
    assigned: Collection[str] = (),
) -> list[str]:
    """Return `size` of the available slots, those in must_include first.

    `assigned` are the UUIDs of cards that the container will get, whatever its slots are.

    Raises DeviceError if the kubelet asks for what can't be.
    """
    chosen = sorted(set(must_include))
    if len(chosen) > size or size > len({*available, *must_include}):
        raise DeviceError(
            f"{resource.name}: can't choose {size} of {len(set(available))} available devices when "
            f"{len(chosen)} must be among them"
        )
    used = list(resource.cards_of(chosen))
    free = _free_slots(resource, set(available) - set(chosen))
    while len(chosen) < size:
        # One round takes at most one slot of each card; only a container that wants more slots
        # than there are cards sees a second one.
        among = {card: slots for card, slots in free.items() if card.uuid in assigned} or free
        for card in _in_order(among, used, size - len(chosen)):
            chosen.append(free[card].pop())
            used.append(card)
        free = {card: slots for card, slots in free.items() if slots}
    return chosen


def _free_slots(resource: Resource, available: Iterable[str]) -> dict[Card, list[str]]:
    """Return the free slots of each card, highest number first (so that pop takes the lowest)."""
    cards = {card.uuid: card for card in resource.cards}
    slots: dict[Card, list[str]] = defaultdict(list)
    for device_id in available:
        uuid = resource.devices.card_of(device_id)
        if uuid not in cards:
            raise DeviceError(f"{resource.name}: there is no device {device_id!r}")
        slots[cards[uuid]].append(device_id)
    return {
        card: sorted(ids, key=lambda slot: int(slot.rpartition("-")[2]), reverse=True)
        for card, ids in slots.items()
    }


def _in_order(free: dict[Card, list[str]], used: Collection[Card], wanted: int) -> list[Card]:
    """Return the cards to take one slot each from, best first, at most `wanted`."""
    fresh = [card for card in free if card not in used] or list(free)
    links = {card.link for card in used} - {None}
    if not links:
        links = _best_link(fresh, wanted)
    # Linked cards first; then the emptiest, so that load spreads; the index decides at last.
    ranked = sorted(fresh, key=lambda c: (c.link not in links, -len(free[c]), c.index))
    return ranked[:wanted]


def _best_link(cards: Collection[Card], wanted: int) -> set[str | None]:
    """Return the set of linked cards to start with: the smallest that is enough, or the largest."""
    members = Counter(card.link for card in cards if card.link is not None)
    if not members or wanted == 1:
        return set()
    ranked = sorted(members, key=lambda link: (members[link], link))
    return {next((link for link in ranked if members[link] >= wanted), ranked[-1])}
