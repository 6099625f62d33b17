"""How a card is. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """What the kubelet makes of a card's devices; those of a lost card aren't listed at all."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    LOST = "lost"


@dataclass(frozen=True)
class CardHealth:
    """A card's health, whether it is degraded (healthy or not), and what says so."""

    health: Health = Health.HEALTHY
    is_degraded: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether containers can be given the card."""
        return self.health is Health.HEALTHY
