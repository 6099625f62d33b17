"""Do the node's numbers fit together: capacity, allocatable, and what the annotations say?"""

from collections.abc import Iterator

from hami_mock.doctor.case import NodeCase, VendorCase, names_of
from hami_mock.doctor.finding import Finding, error, note, warning
from hami_mock.kubelet import limits
from hami_mock.kubelet.wire import HEALTHY, MESSAGE_LIMIT, device_size

MOST_UNITS = MESSAGE_LIMIT // device_size(3, HEALTHY)
"""How many units hami-mock can register for one resource; nobody can register many more."""
MOST_UNITS_OF_HAMIS_MOCK = 123_011
"""The same for HAMi's mock, whose IDs are longer."""

_SHOWN = 6
"""How many names a note lists."""


_FORGET = (
    "if no plugin should register it, delete node {node} and let its kubelet register again: until "
    "then the kubelet keeps the name, and refuses pods that ask for it"
)


def is_left_behind(case: NodeCase, seen: VendorCase) -> bool:
    """Tell whether all that is left of a vendor is that the node once had its resources.

    The kubelet keeps the name of a resource for as long as the node lives.
    """
    names = {name for name in names_of(seen.vendor) if name in case.node.capacity}
    asked = case.asked(pod for pod in case.pods or () if not pod.has_ended)
    is_gone = not any(case.node.capacity[name] for name in names)
    return seen.register is None and is_gone and not asked & names


def left_behind(case: NodeCase) -> Iterator[Finding]:
    names = sorted(
        {
            name
            for seen in case.vendors
            if is_left_behind(case, seen)
            for name in names_of(seen.vendor)
            if name in case.node.capacity
        }
    )
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield note(
            f"node {case.node.name}",
            f"{len(names)} resources are 0 and no plugin serves them; they are left over from an "
            "earlier configuration, because the kubelet keeps the names: "
            f"{', '.join(names[:_SHOWN])}{more}",
            "they do no harm; to get rid of them, delete the node and let it register again",
        )


def count_is_there(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    """A vendor whose cards are registered has its count resource."""
    name = seen.vendor.resources.count
    if seen.cards and name not in case.node.capacity:
        yield error(
            name,
            f"the node has no such resource, although {seen.vendor.node.register} lists "
            f"{len(seen.cards)} cards: pods that ask for it stay Pending",
            "check the device plugin's log: did it register with the kubelet, and under "
            "which name?",
        )


def not_zero(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    for name in names_of(seen.vendor):
        capacity = case.node.capacity.get(name)
        if name in case.in_status:
            continue  # `in_status` knows more
        if name == seen.vendor.resources.memory and _sum(seen) and capacity == 0:
            continue  # `memory_number` knows more
        if capacity == 0:
            is_needed = name == seen.vendor.resources.count
            forget = "" if is_needed else f"; {_FORGET.format(node=case.node.name)}"
            yield error(
                name,
                "capacity is 0: its plugin has been gone for five minutes or more, or the kubelet "
                "refused its list",
                "check that the plugin is running; if it is, restart it to make it register again"
                + forget,
            )
        elif capacity and not case.allocatable(name):
            yield error(
                name,
                f"allocatable is 0 of {capacity}: all devices are unhealthy, or the plugin is gone "
                "(five minutes later, capacity is 0 too)",
                "check that the plugin is running, and what its log says about health",
            )


def memory_number(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    """The memory resource is what the cards have, in its unit."""
    names, total = seen.vendor.resources, _sum(seen)
    found = case.node.capacity.get(names.memory)
    if not names.memory or not total or found is None:
        return
    in_status = names.memory in case.in_status
    if in_status and not found:
        return  # `in_status` knows more
    # In the status a card that has failed offers nothing, beyond what pods have of it.
    cards = [card for card in seen.cards if card.healthy or not in_status]
    # Rounded down card by card, or as a whole: HAMi's mock does one, we do the other.
    least = sum(max(card.memory, 0) // names.memory_unit for card in cards)
    expected = total // names.memory_unit
    key = seen.vendor.vendor.config.factor
    if found == 0:
        told, advice = _nothing(expected, names.memory_unit, key)
        yield error(names.memory, told, f"{advice}; {_FORGET.format(node=case.node.name)}")
    elif not least <= found <= expected:
        factor = total // found
        is_factor = total // factor == found and factor != names.memory_unit if factor else False
        same = f"{found} would be right for a memoryFactor of {factor}: "
        same += (
            "set the same factor in HAMi and in the plugin that registers the resource"
            if key
            else "HAMi's configuration has none for it, so the plugin must not use one"
        )
        yield warning(
            names.memory,
            f"capacity is {found}, but the cards in {seen.vendor.node.register} have {total} MiB, "
            f"which are {expected} units of {names.memory_unit} MiB",
            same
            if is_factor
            else "check that the plugin that registers it has read the current annotation",
        )


def _nothing(expected: int, unit: int, key: str) -> tuple[str, str]:
    """Say why there may be none; `key` is that of the factor in HAMi's configuration, if any."""
    told = f"capacity is 0, but the cards have {expected} units"
    if expected > MOST_UNITS:
        told += f": a list of them is larger than the kubelet's limit of {MESSAGE_LIMIT} bytes"
        smallest = f"the smallest memoryFactor that fits is {_factor(expected, unit, MOST_UNITS)}; "
        no_limit = "in the node's status (hami-mock --units status) there is no limit"
        return told, smallest * bool(key) + no_limit
    if expected > MOST_UNITS_OF_HAMIS_MOCK:
        told += f": HAMi's mock can't register more than {MOST_UNITS_OF_HAMIS_MOCK}"
        factor = _factor(expected, unit, MOST_UNITS_OF_HAMIS_MOCK)
        set_factor = f"set memoryFactor to {factor}, or "
        return told, set_factor * bool(key) + "use hami-mock --source hami"
    who = "the plugin that registers it (hami-mock, HAMi's mock)"
    return told, f"check that {who} is running on this node"


def _factor(expected: int, unit: int, most: int) -> int:
    return -(-expected * unit // most)


def too_many(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    """From 1.36 on the kubelet bears only so many devices."""
    sizes = {
        name: case.node.capacity.get(name, 0)
        for name in names_of(seen.vendor)
        if name not in case.in_status
    }
    total = sum(sizes.values())
    if limits.too_many(sizes.values(), case.version):
        name, maker = max(sizes, key=lambda each: sizes[each]), seen.vendor.vendor
        coarser = f", or use coarser units (--{maker.prefix}-memory-factor, and the same "
        coarser += "memoryFactor in HAMi's configuration)"
        yield warning(
            name,
            f"{total} devices are a lot for kubelet 1.36 or newer: a pod can hold at most "
            f"{limits.LARGEST_POD}, and a kubelet that restarts while all are allocated needs "
            f"about {limits.restart_seconds(sizes.values(), case.version):.0f} s",
            "let hami-mock keep them in the node's status (--units auto; its role needs the verb "
            "patch of nodes/status)" + coarser * bool(maker.config.factor),
        )


def _sum(seen: VendorCase) -> int:
    return sum(card.memory for card in seen.cards)
