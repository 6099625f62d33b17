"""Plain counters. They cost nothing until somebody asks; `metrics` turns them into text."""

from bisect import bisect_left
from dataclasses import dataclass, field

BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


@dataclass
class Histogram:
    """Counts of observations up to each bound, their number and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    number: int = 0
    total: float = 0.0

    def observe(self, value: float) -> None:
        self.number += 1
        self.total += value
        for index in range(bisect_left(BUCKETS, value), len(BUCKETS)):
            self.counts[index] += 1


@dataclass
class ResourceCounters:
    """What has happened to one resource since the start."""

    registrations: int = 0
    registration_errors: int = 0
    lists: int = 0
    list_bytes: int = 0
    allocations: int = 0
    allocation_errors: int = 0
    allocated_devices: int = 0
    allocation_seconds: Histogram = field(default_factory=Histogram)
