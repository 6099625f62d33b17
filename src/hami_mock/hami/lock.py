"""The lock on a node: from the scheduler's bind until the node side has allocated.

Who finds the lock of another pod gives up, so one that isn't released stops all pods for the node
until it expires.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from hami_mock.hami.go_values import bounded, refusal
from hami_mock.hami.kinds import HAMI_LOCK

# datetime alone would take more: dates without time, times without zone, other separators.
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")

_NAME = re.compile(r"([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?)?")


@dataclass(frozen=True)
class NodeLock:
    """When a node was locked, and for which pod.

    Cambricon's lock names no pod, and HAMi's didn't before 2.4.
    """

    time: datetime
    namespace: str = ""
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an annotation's value. Raises Malformed for what HAMi refuses."""
        time, *pod = bounded(text).split(",")
        # HAMi takes any name; but no pod has another, and it becomes a part of a URL.
        if len(pod) not in (0, 2) or not all(map(_NAME.fullmatch, pod)):
            raise refusal(
                "the lock", text, "a time, or a time, a namespace and a pod separated by commas"
            )
        return cls(_read_time(time), *pod)

    def encode(self) -> str:
        time = self.time.isoformat(timespec="seconds").replace("+00:00", "Z")
        return f"{time},{self.namespace},{self.name}" if self.names_pod else time

    @property
    def names_pod(self) -> bool:
        return bool(self.namespace and self.name)

    def expired(self, now: datetime, lifetime: timedelta = HAMI_LOCK.lifetime) -> bool:
        """Tell whether the scheduler would take the lock away from its pod."""
        return now - self.time > lifetime

    def is_of(self, namespace: str, name: str) -> bool:
        """Tell whether it is that pod's, as far as it says: one that names nobody is anybody's."""
        return not self.names_pod or (self.namespace, self.name) == (namespace, name)


def _read_time(text: str) -> datetime:
    try:
        if _RFC3339.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # a 30th of February, say
    raise refusal("the lock's time", text, "like 2026-11-15T23:25:11Z")
