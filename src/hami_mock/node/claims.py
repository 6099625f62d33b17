"""ResourceClaims that were prepared for pods of this node. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    # Few cards are cut.
    from hami_mock.node.instances import Instance


@dataclass(frozen=True)
class ClaimedDevice:
    """A device, or a part of one, that a claim has.

    - request: what in the claim asked for it
    - share: tells parts of the same device apart; "" for a whole one
    - card: the card's UUID; memory, cores: MiB and percent of it
    - instance: what was cut out of the card for it
    - is_admin: it is looked at, and not held
    """

    request: str
    pool: str
    name: str
    card: str
    memory: int
    cores: int
    share: str = ""
    instance: "Instance | None" = None
    is_admin: bool = False

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "ClaimedDevice":
        """Return what `as_data` made a row of. Raises TypeError, ValueError."""
        own = dict(row)
        if (instance := own.get("instance")) is not None:
            from hami_mock.node.instances import Instance

            own["instance"] = Instance(*instance)
        return cls(**own)

    def as_data(self) -> dict[str, Any]:
        found = dict(vars(self))
        return found | {"instance": self.instance and list(self.instance)}


class ClaimKey(NamedTuple):
    """One of the drivers that have devices in a claim, and the claim: its namespace/name.

    The kubelet tells of a claim that a container has as if it were a device of that driver.
    """

    driver: str
    claim: str


@dataclass(frozen=True)
class PreparedClaim:
    """What a claim has of one driver's devices."""

    key: ClaimKey
    uid: str
    devices: tuple[ClaimedDevice, ...]
