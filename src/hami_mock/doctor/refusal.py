"""The scheduler's own words for a pod that it places nowhere, with the numbers. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hami_mock.doctor.case import NodeCase, PodCase
from hami_mock.doctor.finding import Finding, error
from hami_mock.doctor.pod_object import Container, PodObject
from hami_mock.hami.assignment import Assignment
from hami_mock.hami.errors import Malformed
from hami_mock.hami.register import RegisteredDevice
from hami_mock.vendors.hami_vendor import HamiVendor

_SHOWN = 8
"""How many cards a finding lists."""

WORDS: Mapping[str, Mapping[str, str]] = json.loads(
    Path(__file__).with_name("refusal_words.json").read_text(encoding="utf-8")
)
"""The reasons: what each means, what to do, which number of a card it is about, and whose it is."""

# "2/3 CardInsufficientMemory": so many of a node's cards; events and some reasons have no number.
# With longer ones, a text of nothing but digits would take hours.
_FOUND = re.compile(rf"(?:(\d{{1,6}})/(\d{{1,6}}) )?\b({'|'.join(WORDS)})\b")


def hami_words(case: PodCase) -> Iterator[Finding]:
    """The scheduler, HAMi's or Kubernetes' own, gave no reason against the pod."""
    if case.is_settled:
        return
    told: dict[str, list[str]] = {}
    for some, all_cards, name in _FOUND.findall(case.pod.unscheduled):
        told.setdefault(name, []).extend([f"{some} of {all_cards} cards"] if some else [])
    for name, counts in told.items():
        word = WORDS[name]
        what = word["meaning"] + (f" ({', '.join(dict.fromkeys(counts))})" if counts else "")
        numbers = _numbers(case, word["about"]) if "about" in word else ""
        yield error(f"{word.get('who', 'HAMi')}: {name}", f"{what}{numbers}", word["advice"])


def _numbers(case: PodCase, about: str) -> str:
    """Return what the pod asks for, and what each card of the nodes it could be on has left."""
    asked = [
        f"container {container.name} asks for {_ask(container, vendor, count, about)}"
        for vendor in case.asked
        for container, count in case.containers_asking(vendor)
    ]
    if not asked:
        return ""
    left = []
    for node in (case.node,) if case.node else case.elsewhere:
        for vendor in case.asked:
            used = _used(node, vendor, case.pod)
            left += [
                f"{node.node.name}: {card.id} {_left(card, used, about)}"
                for card in node.cards(vendor)
            ]
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    cards = f". On node {'; '.join(left[:_SHOWN])}{more}" if left else ""
    return f": {'; '.join(asked)}{cards}"


def _ask(container: Container, vendor: HamiVendor, count: int, about: str) -> str:
    names, asks = vendor.resources, container.asks
    each = f"{count} {names.count}"
    if about == "memory":
        if asks.get(names.memory):
            return f"{each} with {asks[names.memory] * names.memory_unit} MiB"
        return f"{each} with {asks.get(names.percentage) or 100} % of the memory"
    if about == "cores":
        return f"{each} with {asks.get(names.cores, 0)} cores"
    return each


def _left(card: RegisteredDevice, used: Mapping[str, Sequence[int]], about: str) -> str:
    slots, memory, cores = used.get(card.id, (0, 0, 0))
    return {
        "memory": f"{card.memory - memory} of {card.memory} MiB left",
        "cores": f"{card.cores - cores} of {card.cores} cores left",
        "slots": f"{card.count - slots} of {card.count} slots left",
        "type": f"is a {card.type}" + (f" in mode {card.mode}" if card.mode else ""),
        "id": "is healthy" if card.healthy else "is unhealthy",
    }[about]


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
