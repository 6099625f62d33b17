"""A fault: something that is wrong for as long as it lasts. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    """What a fault does: the first three to cards, the others to resources."""

    UNHEALTHY = "unhealthy"
    LOST = "lost"
    DEGRADED = "degraded"
    DOWN = "down"
    REFUSED = "refused"
    SLOW = "slow"
    HUNG = "hung"
    BROKEN = "broken"


CARD_EFFECTS = frozenset({Effect.UNHEALTHY, Effect.LOST, Effect.DEGRADED})
CALL_EFFECTS = frozenset({Effect.SLOW, Effect.HUNG, Effect.BROKEN})


class Call(StrEnum):
    """The calls of the kubelet that can be slow, hang or fail."""

    ALLOCATE = "allocate"
    PRESTART = "prestart"


@dataclass(frozen=True, eq=False)
class Fault:
    """One fault. Two that say the same are still two: ending one doesn't end the other.

    `targets` are UUIDs of cards, or names of resources; `call` and `seconds` belong to the effects
    on calls.
    """

    effect: Effect
    targets: frozenset[str]
    reason: str = ""
    call: Call | None = None
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """The fault in words."""
        what = f"{self.call} {self.effect}" if self.call else str(self.effect)
        if self.seconds:
            what += f" for {self.seconds:g} s"
        return what + (self.reason and f": {self.reason}")
