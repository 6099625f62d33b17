"""Recorded load: CSV, understood by its header. Pure.

- ours: time, utilization and, if wanted, memory (percent) and name (NAMESPACE/POD[/CONTAINER])
- Alibaba 2026-GenAI: value, timestamp_anon, container_ip; of duty cycles or of memory in bytes
- Philly's cluster_gpu_util: time, machineId, gpu0_util … gpu7_util, with NA and a comma at the end

Time begins with the first row. A trace begins anew when it is over.
"""

import csv
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import NamedTuple

from hami_mock.errors import UsageError
from hami_mock.kit import durations
from hami_mock.kit.text import LONGEST_LINE, cut
from hami_mock.kit.values import shown

MOST_BYTES = 16 * 2**20
MOST_SAMPLES = 1_000_000
_MOST_SERIES = 10_000
_MOST_COLUMNS = 200
_MIB = 2**20
_BYTES_FROM = 1000.0
"""Both of Alibaba's files have the same columns; a value above this is no percentage."""
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})

FORMS = (
    "time,utilization[,memory][,name]; value,timestamp_anon,container_ip (Alibaba); "
    "time,machineId,gpu0_util,… (Philly)"
)


class Sample(NamedTuple):
    """Percent of a card, percent of the memory limit and MiB of memory; None: not recorded."""

    busy: float | None = None
    memory_part: float | None = None
    memory: float | None = None


class _Row(NamedTuple):
    name: str
    time: float
    sample: Sample


@dataclass
class Track:
    """One recorded quantity: its values, each from a time on."""

    times: "array[float]" = field(default_factory=lambda: array("d"))
    values: "array[float]" = field(default_factory=lambda: array("f"))

    def sort(self) -> None:
        if any(a > b for a, b in zip(self.times, self.times[1:], strict=False)):
            order = sorted(range(len(self.times)), key=self.times.__getitem__)
            self.times = array("d", (self.times[i] for i in order))
            self.values = array("f", (self.values[i] for i in order))

    def at(self, time: float) -> float | None:
        if not self.times:
            return None
        return self.values[max(0, bisect_right(self.times, time) - 1)]


@dataclass
class Series:
    """What was recorded of one container or card."""

    busy: Track = field(default_factory=Track)
    memory_part: Track = field(default_factory=Track)
    memory: Track = field(default_factory=Track)

    @property
    def tracks(self) -> tuple[Track, Track, Track]:
        """The tracks in the order of a sample."""
        return self.busy, self.memory_part, self.memory

    def at(self, time: float) -> Sample:
        return Sample(*(track.at(time) for track in self.tracks))


@dataclass(frozen=True)
class Trace:
    """Series by name; `is_named`: for the containers that are called so, else for any."""

    series: dict[str, Series]
    begin: float
    length: float
    is_named: bool

    def find(self, container: Sequence[str], key: int) -> Series | None:
        """Return the series of a container; one of them by its key, if they are for any."""
        if self.is_named:
            names = ("/".join(container), "/".join(container[:2]))
            return next((self.series[name] for name in names if name in self.series), None)
        return next(islice(self.series.values(), key % len(self.series), None))

    def at(self, series: Series, elapsed: float) -> Sample:
        return series.at(self.begin + (elapsed % self.length if self.length > 0 else 0.0))


def parse(lines: Iterable[str], place: str) -> Trace:
    """Return the trace. Raises UsageError that names the place, the line and what is wrong."""
    rows = csv.reader(lines)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        read = _reader(header)
        series: dict[str, Series] = {}
        samples = 0
        for row in rows:
            for found in read(row) if any(row) else ():
                samples += _add(series, found)
            if samples > MOST_SAMPLES or len(series) > _MOST_SERIES:
                limit = f"{MOST_SAMPLES} values or {_MOST_SERIES} series"
                raise ValueError(f"there are more than {limit}: cut it off before this line")
    except (ValueError, csv.Error) as error:
        where = f"{place}, line {max(1, rows.line_num)}"
        raise UsageError(f"{where}: {cut(str(error), LONGEST_LINE)}") from error
    return _made(series, place, is_named="name" in header)


def _made(series: dict[str, Series], place: str, *, is_named: bool) -> Trace:
    if not series:
        raise UsageError(f"{place}: it has no values: write lines under the header")
    if any(each.memory.times for each in series.values()):
        for each in series.values():
            each.busy = Track()  # what was small among bytes
    tracks = [track for each in series.values() for track in each.tracks if track.times]
    for track in tracks:
        track.sort()
    begin = min(track.times[0] for track in tracks)
    end = max(track.times[-1] for track in tracks)
    count = max(len(track.times) for track in tracks)
    # The last value lasts as long as the others do on average.
    last = (end - begin) / (count - 1) if count > 1 else 0.0
    return Trace(series, begin, end - begin + last, is_named)


def merged(traces: Sequence[Trace]) -> Trace:
    """Return several files of one recording as one: Alibaba's have a quantity each."""
    first, *others = traces
    series = dict(first.series)
    for other in others:
        for name, more in other.series.items():
            mine = series.get(name, Series()).tracks
            both = zip(mine, more.tracks, strict=True)
            series[name] = Series(*(have if have.times else new for have, new in both))
    begin = min(trace.begin for trace in traces)
    end = max(trace.begin + trace.length for trace in traces)
    return Trace(series, begin, end - begin, first.is_named)


def _add(series: dict[str, Series], row: _Row) -> int:
    added = 0
    for position, value in enumerate(row.sample):
        if value is not None:
            track = series.setdefault(row.name, Series()).tracks[position]
            track.times.append(row.time)
            track.values.append(value)
            added += 1
    return added


class _Columns:
    """Where each column of a header is; a row may have too few of them."""

    def __init__(self, header: Sequence[str]) -> None:
        self.at = {name: position for position, name in enumerate(header) if name}
        self.gpus = [name for name in self.at if name.startswith("gpu") and name.endswith("_util")]

    def cell(self, row: Sequence[str], name: str) -> str:
        position = self.at.get(name, len(row))
        return row[position].strip() if position < len(row) else ""


def _ours(columns: _Columns, row: Sequence[str]) -> Iterator[_Row]:
    busy, memory = (_percent(columns.cell(row, name)) for name in ("utilization", "memory"))
    time = _time(columns.cell(row, "time"))
    yield _Row(columns.cell(row, "name"), time, Sample(busy, memory))


def _alibaba(columns: _Columns, row: Sequence[str]) -> Iterator[_Row]:
    value = _number(columns.cell(row, "value"))
    is_memory = value is not None and value > _BYTES_FROM
    sample = Sample(memory=value / _MIB) if is_memory and value else Sample(_bounded(value))
    time = _time(columns.cell(row, "timestamp_anon"))
    yield _Row(columns.cell(row, "container_ip"), time, sample)


def _philly(columns: _Columns, row: Sequence[str]) -> Iterator[_Row]:
    time, machine = _time(columns.cell(row, "time")), columns.cell(row, "machineid")
    for name in columns.gpus:
        yield _Row(f"{machine}/{name}", time, Sample(_percent(columns.cell(row, name))))


_Read = Callable[[_Columns, Sequence[str]], Iterator[_Row]]
_FORMATS: tuple[tuple[set[str], _Read], ...] = (
    ({"time", "utilization"}, _ours),
    ({"value", "timestamp_anon", "container_ip"}, _alibaba),
    ({"time", "machineid", "gpu0_util"}, _philly),
)


def _reader(header: Sequence[str]) -> Callable[[Sequence[str]], Iterator[_Row]]:
    """Return what makes samples of a row. Raises ValueError for a header that isn't known."""
    if len(header) > _MOST_COLUMNS:
        raise ValueError(f"more than {_MOST_COLUMNS} columns")
    columns = _Columns(header)
    for needed, read in _FORMATS:
        if needed <= columns.at.keys():
            return partial(read, columns)
    raise ValueError(f"the header {shown(','.join(header))} isn't known: it must be {FORMS}")


def _number(text: str) -> float | None:
    if text.lower() in _MISSING:
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{shown(text)} is not a number") from None
    if not 0 <= value < 1e15:
        raise ValueError(f"{shown(text)} is out of range: it must be at least 0 and below 1e15")
    return value


def _bounded(value: float | None) -> float | None:
    return None if value is None else min(100.0, value)


def _percent(text: str) -> float | None:
    return _bounded(_number(text.removesuffix("%")))


def _time(text: str) -> float:
    """Return seconds: of a number, a time such as 1h30m, or a date, whose zone is left out."""
    for read in (float, durations.parse, _date):
        try:
            value = read(text)
        except ValueError:
            continue
        if abs(value) < 1e12:
            return value
    raise ValueError(f"{shown(text)} is not a time: write seconds, 1h30m or 2026-11-18 10:00:00")


def _date(text: str) -> float:
    words = text.replace("T", " ").split()[:2]
    return datetime.fromisoformat(" ".join(words)).replace(tzinfo=UTC).timestamp()
