"""What dcgm-exporter serves beside its default set, if told to: DCGM_EXP_*, and the fan.

Some of it counts over a window of five minutes, of which a sample is taken every 30 s, as often as
dcgm-exporter looks at a card.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from hami_mock.kit.exposition_text import head_text
from hami_mock.node.readings import Throttle
from hami_mock.node.state import NodeState
from hami_mock.views.exporters.rows import Row

SAMPLE_SECONDS = 30.0
_WINDOW_SECONDS = 300
_PASS, _WARN, _FAIL = 0, 10, 20
_WATCHES = (
    "PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER", "ALL",
)  # fmt: skip
_WINDOW = f'window_size_in_ms="{_WINDOW_SECONDS * 1000}"'
# Which part of a card a Xid is a failure of; with others, and without one, it is all of the card.
_OF_XID = {
    **dict.fromkeys((48, 63, 64, 92, 94, 140), ("MEM", "DCGM_FR_VOLATILE_DBE_DETECTED")),
    74: ("NVLINK", "DCGM_FR_NVLINK_DOWN"),
    79: ("ALL", "DCGM_FR_FALLEN_OFF_BUS"),
    95: ("ALL", "DCGM_FR_UNCONTAINED_ERROR"),
}

LabeledRow = tuple[Row, tuple[str, str]]
"""A card's row, and its labels before and after those of a metric's own."""


class _Sample(NamedTuple):
    xids: Mapping[tuple[str, int], int]
    throttles: Mapping[str, frozenset[Throttle]]


class Window:
    """What has happened to cards within the last minutes."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._samples: deque[_Sample] = deque(maxlen=int(_WINDOW_SECONDS / SAMPLE_SECONDS))
        self.take()

    def take(self) -> None:
        """Remember how it is now; the oldest sample goes."""
        throttles = {uuid: reading.throttles for uuid, reading in self._state.readings.items()}
        self._samples.append(_Sample(dict(self._state.xids), throttles))

    def xids(self, uuid: str) -> dict[int, int]:
        """Return how often a card had which Xid."""
        before = self._samples[0].xids
        counts = {
            xid: count - before.get((of, xid), 0)
            for (of, xid), count in self._state.xids.items()
            if of == uuid
        }
        return {xid: count for xid, count in sorted(counts.items()) if count > 0}

    def throttles(self, uuid: str) -> dict[Throttle, int]:
        """Return in how many samples a card's clock was held down, and by what."""
        held = chain.from_iterable(each.throttles.get(uuid, ()) for each in self._samples)
        return dict(sorted(Counter(held).items()))


def extras_text(rows: Sequence[LabeledRow], window: Window) -> str:
    """Return the text of the extra metrics."""
    parts: list[str] = []
    for name, help_text, kind, samples in EXTRAS:
        lines = [
            f"{name}{{{before}{labels}{after}}} {value}\n"
            for row, (before, after) in rows
            for labels, value in samples(row, window)
        ]
        if lines:
            parts += [head_text(name, help_text, kind), *lines]
    return "".join(parts)


_Samples = Iterable[tuple[str, int]]


def _clock_events(row: Row, window: Window) -> _Samples:
    found = window.throttles(row.card.uuid)
    if not found:
        return [(f",{_WINDOW}", 0)]
    return [(f',clock_event="{event}",{_WINDOW}', count) for event, count in found.items()]


def _xids(row: Row, window: Window) -> _Samples:
    found = window.xids(row.card.uuid)
    if not found:
        return [(f",{_WINDOW}", 0)]
    return [(f',{_WINDOW},xid="{xid}"', count) for xid, count in found.items()]


def _health(row: Row, _window: Window) -> _Samples:
    found = _incidents(row)
    for watch in _WATCHES:
        status, code = found.get(watch, (_PASS, "DCGM_FR_OK"))
        yield f',health_error_code="{code}",health_watch="{watch}"', status


def _incidents(row: Row) -> dict[str, tuple[int, str]]:
    found = {}
    if row.reading.throttles & {Throttle.SOFTWARE_THERMAL, Throttle.HARDWARE_THERMAL}:
        found["THERMAL"] = _WARN, "DCGM_FR_CLOCK_THROTTLE_THERMAL"
    if row.reading.remap_failed:
        found["MEM"] = _FAIL, "DCGM_FR_ROW_REMAP_FAILURE"
    if not row.is_healthy:
        watch, code = _OF_XID.get(row.reading.last_xid, ("ALL", "DCGM_FR_XID_ERROR"))
        found[watch] = _FAIL, code
    return found


def _fan(row: Row, _window: Window) -> _Samples:
    return [] if row.reading.fan is None else [("", row.reading.fan)]


_Extra = tuple[str, str, str, Callable[[Row, Window], _Samples]]
EXTRAS: tuple[_Extra, ...] = (
    ("DCGM_EXP_CLOCK_EVENTS_COUNT", "Clock events in the window.", "counter", _clock_events),
    ("DCGM_EXP_XID_ERRORS_COUNT", "Xids in the window.", "counter", _xids),
    ("DCGM_EXP_GPU_HEALTH_STATUS", "0: pass, 10: warning, 20: failure.", "counter", _health),
    ("DCGM_FI_DEV_FAN_SPEED", "Speed of the fan (in %).", "gauge", _fan),
)
NAMES = tuple(name for name, *_ in EXTRAS)
