"""How busy a container is over time: shapes with parameters. Pure; `load_reader` reads their text.

What a shape comes to at a time depends on the seed, the container and the time, on nothing else:
two agents, or one after a restart, show the same.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, floor, pi
from typing import NamedTuple

DAY = 86400.0
_HOLD_SECONDS = 10.0
"""How long a value that is drawn from a range stays, as in fake-gpu-operator."""
_PEAK_SECONDS = 15 * 3600.0
"""When, after midnight UTC, the day's work is at its most."""
_MASK = 2**64 - 1


class Level(NamedTuple):
    """Percent, from one to another; both the same if it doesn't change."""

    low: float
    high: float

    def at(self, part: float) -> float:
        return self.low + (self.high - self.low) * part


class Moment(NamedTuple):
    """When a container is looked at: how long it has run, and the time since 1970, both in s.

    `key` stands for the seed and the container.
    """

    elapsed: float
    time: float
    key: int


@dataclass(frozen=True)
class Span:
    """A part of a schedule: how long, and how busy."""

    seconds: float
    busy: Level


@dataclass(frozen=True)
class Shape:
    """One load.

    - kind: a key of KINDS
    - busy: percent of the card
    - period: seconds, of what comes again or takes its time
    - part: seconds of each period that are different: a burst, a checkpoint
    - memory: percent of the container's memory limit; None: its context alone
    - schedule, repeat: of the kind `schedule`; it is idle after so many times, None: never
    """

    kind: str
    text: str
    busy: Level
    memory: Level | None
    period: float = 0.0
    part: float = 0.0
    schedule: tuple[Span, ...] = ()
    ends: tuple[float, ...] = ()
    repeat: int | None = None

    def value(self, moment: Moment) -> float:
        """Return percent of the card at a moment."""
        return min(100.0, max(0.0, KINDS[self.kind].value(self, moment)))

    def memory_part(self, moment: Moment) -> float:
        """Return percent of the memory limit; 0: the context alone."""
        if self.memory is None:
            return 0.0
        low, high = self.memory
        return low if low == high else self.memory.at(_drawn(moment, _HOLD_SECONDS, 1))


class Kind(NamedTuple):
    """What is usual for a kind of shape, and how its value is worked out.

    - takes: the parameters that may be given besides busy and memory
    """

    value: Callable[[Shape, Moment], float]
    help: str
    example: str
    busy: Level = Level(80, 80)
    memory: Level | None = Level(50, 50)
    period: float = 0.0
    part: float = 0.0
    takes: Sequence[str] = ()


def key_of(seed: int, *names: str) -> int:
    """Return a number that stands for a seed and a name, and looks like no other's."""
    text = "\0".join((str(seed), *names)).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


def _drawn(moment: Moment, hold: float, salt: int = 0) -> float:
    """Return a number from 0 to 1 that is another one every so many seconds (splitmix64)."""
    mixed = (moment.key + (floor(moment.time / hold) * 2 + salt + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) / _MASK


def _idle(_shape: Shape, _moment: Moment) -> float:
    return 0.0


def _steady(shape: Shape, moment: Moment) -> float:
    low, high = shape.busy
    return low if low == high else shape.busy.at(_drawn(moment, _HOLD_SECONDS))


def _ramp(shape: Shape, moment: Moment) -> float:
    return shape.busy.at(min(1.0, moment.elapsed / shape.period))


def _sine(shape: Shape, moment: Moment) -> float:
    return shape.busy.at((1 - cos(2 * pi * moment.elapsed / shape.period)) / 2)


def _burst(shape: Shape, moment: Moment) -> float:
    is_burst = moment.elapsed % shape.period < shape.part
    return shape.busy.high if is_burst else shape.busy.low


def _training(shape: Shape, moment: Moment) -> float:
    """Busy until a checkpoint is written at the end of each period; then the card waits."""
    if moment.elapsed % shape.period >= shape.period - shape.part:
        return 0.0
    return _steady(shape, moment)


def _inference(shape: Shape, moment: Moment) -> float:
    """A day's wave, and requests that come as they please."""
    wave = (1 + cos(2 * pi * (moment.time - _PEAK_SECONDS) / shape.period)) / 2
    return shape.busy.at(0.85 * wave + 0.15 * _drawn(moment, _HOLD_SECONDS))


def _scheduled(shape: Shape, moment: Moment) -> float:
    rounds, within = divmod(moment.elapsed, shape.ends[-1])
    if shape.repeat is not None and rounds >= shape.repeat:
        return 0.0
    busy = shape.schedule[min(bisect_right(shape.ends, within), len(shape.ends) - 1)].busy
    return busy.low if busy.low == busy.high else busy.at(_drawn(moment, _HOLD_SECONDS))


KINDS: dict[str, Kind] = {
    "steady": Kind(_steady, "as busy all the time; a range is drawn from every 10 s", "steady:80"),
    "idle": Kind(_idle, "opened, and not used", "idle", Level(0, 0), None),
    "ramp": Kind(
        _ramp, "rises over a period, and stays", "ramp:0-90:10m",
        Level(0, 90), period=600.0, takes=("period",),
    ),
    "sine": Kind(
        _sine, "up and down in each period", "sine:20-80:10m",
        Level(20, 80), period=600.0, takes=("period",),
    ),
    "burst": Kind(
        _burst, "high for a part of each period, low for the rest", "burst:5-95:5m:part=30s",
        Level(5, 95), period=300.0, part=30.0, takes=("period", "part"),
    ),
    "training": Kind(
        _training, "busy, with a checkpoint at the end of each period", "training:95:30m:part=1m",
        Level(90, 98), Level(85, 85), period=1800.0, part=60.0, takes=("period", "part"),
    ),
    "inference": Kind(
        _inference, "follows the time of day, most at 15:00 UTC", "inference:10-80",
        Level(10, 80), Level(75, 75), period=DAY, takes=("period",),
    ),
}  # fmt: skip
_SCHEDULE = Kind(_scheduled, "one value after the other", "", takes=("repeat",))
KINDS["schedule"] = _SCHEDULE
