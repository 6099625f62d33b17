"""Which of a card's compute units a container may use: AMD's plugin gives each its own.

The scheduler says how many; the plugin takes the first that no other pod has, and writes on the pod
which these are. A list of them looks like 0-3,8,10-12. Here they are the bits of a number.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator

from hami_mock.errors import NotAssigned
from hami_mock.hami.errors import Malformed
from hami_mock.hami.go_values import Fields, json_value, refusal
from hami_mock.kit.text import cut
from hami_mock.vendors.amd import COMPUTE_UNITS as ANNOTATION
from hami_mock.vendors.handout import Container, Given, environment

_RUN = re.compile(r"\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?")

_MOST = 4096
"""No card has so many."""

_log = logging.getLogger(__name__)


def hand_out(container: Container) -> Given:
    """Give a container compute units of its cards.

    Raises NotAssigned if a card hasn't so many left, Malformed if what the pod has can't be read.
    """
    totals = {card.uuid: container.hami.card_cores(card.model) for card in container.cards}
    own = {uuid: _units(runs, uuid) for uuid, runs in _lists(container.annotations.get(ANNOTATION))}
    taken = _taken_by(container.shared)
    masks = []
    for place, (device, card) in enumerate(zip(container.devices, container.cards, strict=True)):
        used = taken.get(card.uuid, 0) | own.get(card.uuid, 0)
        free = [unit for unit in range(totals[card.uuid]) if not used >> unit & 1]
        if not 0 < device.cores <= len(free):
            raise NotAssigned(
                f"HAMi assigned {device.cores} compute units of card {card.index}, and "
                f"{len(free)} of its {totals[card.uuid]} are free"
            )
        units = sum(1 << unit for unit in free[: device.cores])
        own[card.uuid] = own.get(card.uuid, 0) | units
        masks.append(f"{place}:{_written(units)}")
    written = {uuid: _written(units) for uuid, units in sorted(own.items())}
    return Given(
        environment(container, (("HSA_CU_MASK", "{masks}"),), masks=";".join(masks)),
        {ANNOTATION: json.dumps(written, separators=(",", ":"))},
    )


def _taken_by(pods: Iterable[str]) -> dict[str, int]:
    """Return the units that other pods have, by card; what can't be read is nobody's.

    The plugin gives nothing to anybody then. But anybody can write such a pod.
    """
    taken: dict[str, int] = {}
    for text in pods:
        try:
            for uuid, runs in _lists(text):
                taken[uuid] = taken.get(uuid, 0) | _units(runs, uuid)
        except Malformed as error:
            _log.warning("%s of another pod is ignored: %s", ANNOTATION, cut(str(error)))
    return taken


def _lists(text: str | None) -> Iterator[tuple[str, str]]:
    fields = Fields(json_value(text) if text else {}, "the value")
    return ((uuid, fields.get(uuid, str)) for uuid in fields.given)


def _units(runs: str, uuid: str) -> int:
    found = 0
    for run in filter(None, map(str.strip, runs.split(","))):
        read = _RUN.fullmatch(run)
        first, last = (int(read[1]), int(read[2] or read[1])) if read else (1, 0)
        if not first <= last < _MOST:
            raise refusal(uuid, runs, "compute units such as 0-3,8,10-12")
        found |= (1 << last + 1) - (1 << first)
    return found


def _written(units: int) -> str:
    bits = f"{units:b}"[::-1]
    runs = (range(*run.span()) for run in re.finditer("1+", bits))
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
