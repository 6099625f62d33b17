"""HAMi's own words for a pod that it places nowhere, explained with the numbers. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hami_mock.doctor.case import NodeCase
from hami_mock.doctor.finding import Finding, error
from hami_mock.doctor.pod_case import PodCase
from hami_mock.doctor.pod_object import Container, PodObject
from hami_mock.hami.assignment import Assignment
from hami_mock.hami.errors import Malformed
from hami_mock.hami.register import RegisteredDevice
from hami_mock.vendors.hami_vendor import HamiVendor

_SHOWN = 8
"""How many cards a finding lists."""

_WHOLE_CARD = 100


@dataclass(frozen=True)
class _Word:
    """One of HAMi's reasons: what it means, what to do, and which number of a card it is about."""

    meaning: str
    advice: str
    about: str = ""


_MEMORY, _CORES, _SLOTS, _TYPE, _ID = "memory", "cores", "slots", "type", "id"

WORDS = {
    "CardInsufficientMemory": _Word(
        "no card has that much memory left",
        "ask for less memory, let other pods end, or raise the memory scaling of the node",
        _MEMORY,
    ),
    "CardInsufficientCore": _Word(
        "no card has that many cores left",
        "ask for fewer cores, or let other pods end",
        _CORES,
    ),
    "CardComputeUnitsExhausted": _Word(
        "the pod asks for no cores, and all cores of the card are taken",
        "let the pods that took the cores end, or ask for cores on another card",
        _CORES,
    ),
    "CardTimeSlicingExhausted": _Word(
        "every slot of the card is taken",
        "let other pods end, or slice cards into more slots (--VENDOR-split)",
        _SLOTS,
    ),
    "ExclusiveDeviceAllocateConflict": _Word(
        "the pod wants a card for itself (all its cores, or the policy mutex), and other pods "
        "use it",
        "ask for fewer than 100 cores, or wait for a card that nobody uses",
        _SLOTS,
    ),
    "CardTypeMismatch": _Word(
        "the pod's annotations don't allow a card of this type",
        "compare the pod's annotations that end in use-gputype with the types of the cards",
        _TYPE,
    ),
    "CardUuidMismatch": _Word(
        "the pod's annotations don't allow this card",
        "compare the pod's annotations that end in use-gpuuuid with the IDs of the cards",
        _ID,
    ),
    "ModeNotFit": _Word(
        "the cards aren't sliced the way the pod asks for",
        "compare the pod's annotation huawei.com/vnpu-mode with the node's hami-vnpu-core "
        "(Ascend), or its memory with the profiles in enflame.com/gcu-drs-capacity (Enflame)",
        _TYPE,
    ),
    "CardNotHealth": _Word(
        "the card is unhealthy", "see the device plugin's log, and hami-mock doctor NODE", _ID
    ),
    "CardCordoned": _Word(
        "the card is cordoned (annotation hami.io/device-cordon of the node)",
        "remove the card from that annotation",
        _ID,
    ),
    "NumaNotFit": _Word(
        "the pod wants all its cards on one NUMA node, but none has enough",
        "ask for fewer cards, or drop its annotation numa-bind",
    ),
    "CardMigTopologyInfeasible": _Word(
        "the card is in MIG mode, and there is no room left for an allowed profile of that size",
        "ask for the memory of a smaller profile, or let other pods end",
        _MEMORY,
    ),
    "CardNotFoundCustomFilterRule": _Word(
        "a vendor-specific rule excluded the card",
        "the log of hami-scheduler says which (-v=5)",
    ),
    "AllocatedCardsInsufficientRequest": _Word(
        "some cards fit, but fewer than a container asks for",
        "ask for fewer cards, or let other pods end",
        _SLOTS,
    ),
    "NodeInsufficientDevice": _Word(
        "the node has fewer cards than a container asks for",
        "ask for fewer: each one needs a card of its own",
        _SLOTS,
    ),
    "ResourceQuotaNotFit": _Word(
        "the ResourceQuota of the namespace leaves too little memory or cores",
        "kubectl describe resourcequota shows how much of it is used",
    ),
    "node unregistered": _Word(
        "HAMi's scheduler knows of no cards on the node",
        "hami-mock doctor NODE shows what is missing there",
    ),
}
# "2/3 CardInsufficientMemory": so many of a node's cards; events and some reasons have no number.
_FOUND = re.compile(rf"(?:(\d+)/(\d+) )?\b({'|'.join(WORDS)})\b")


def hami_words(case: PodCase) -> Iterator[Finding]:
    """HAMi's scheduler gave no reason against the pod."""
    if case.is_settled:
        return
    told: dict[str, list[str]] = {}
    for some, all_cards, word in _FOUND.findall(case.pod.unscheduled):
        told.setdefault(word, []).extend([f"{some} of {all_cards} cards"] if some else [])
    for name, counts in told.items():
        word = WORDS[name]
        what = word.meaning + (f" ({', '.join(dict.fromkeys(counts))})" if counts else "")
        numbers = _numbers(case, word.about)
        yield error(f"HAMi: {name}", f"{what}{numbers}", word.advice)


def _numbers(case: PodCase, about: str) -> str:
    """Return what the pod asks for, and what each card of the nodes it could be on has left."""
    asked = [
        f"container {container.name} asks for {_ask(container, vendor, count, about)}"
        for vendor in case.asked
        for container, count in case.containers_asking(vendor)
    ]
    left = [
        f"{node.node.name}: {card.id} {_left(card, _used(node, vendor, case.pod), about)}"
        for node in case.candidates
        for vendor in case.asked
        for card in node.cards(vendor)
    ]
    if not about or not asked:
        return ""
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    cards = f". On node {'; '.join(left[:_SHOWN])}{more}" if left else ""
    return f": {'; '.join(asked)}{cards}"


def _ask(container: Container, vendor: HamiVendor, count: int, about: str) -> str:
    names, asks = vendor.resources, container.asks
    each = f"{count} {names.count}"
    if about == _MEMORY:
        if asks.get(names.memory):
            return f"{each} with {asks[names.memory] * names.memory_unit} MiB"
        return f"{each} with {asks.get(names.percentage) or _WHOLE_CARD} % of the memory"
    if about == _CORES:
        return f"{each} with {asks.get(names.cores, 0)} cores"
    return each


def _left(card: RegisteredDevice, used: Mapping[str, Sequence[int]], about: str) -> str:
    slots, memory, cores = used.get(card.id, (0, 0, 0))
    match about:
        case "memory":
            return f"{card.memory - memory} of {card.memory} MiB left"
        case "cores":
            return f"{card.cores - cores} of {card.cores} cores left"
        case "slots":
            return f"{card.count - slots} of {card.count} slots left"
        case "type":
            return f"is a {card.type}" + (f" in mode {card.mode}" if card.mode else "")
    return "is healthy" if card.healthy else "is unhealthy"


def _used(node: NodeCase, vendor: HamiVendor, pod: PodObject) -> dict[str, tuple[int, int, int]]:
    """Return slots, MiB and cores that other pods have of each card, as HAMi assigned them."""
    used: dict[str, tuple[int, int, int]] = {}
    for other in node.others(pod):
        try:
            assignment = Assignment.parse(other.annotations.get(vendor.pods.allocated, ""))
        except Malformed:
            continue  # the doctor says so of that pod
        for device in (each for devices in assignment.containers for each in devices):
            # An instance of a MIG card is called GPU-…[0-1].
            card = device.id.partition("[")[0]
            slots, memory, cores = used.get(card, (0, 0, 0))
            used[card] = (slots + 1, memory + device.memory, cores + device.cores)
    return used
