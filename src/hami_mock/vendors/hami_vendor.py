"""What there is to know of a vendor that HAMi's scheduler knows."""

from dataclasses import dataclass
from typing import Any, Self

from hami_mock.hami.environment import NONE, Environment
from hami_mock.hami.handshake import ReportStyle
from hami_mock.hami.lock import Lock
from hami_mock.hami.register import Encoding


@dataclass(frozen=True)
class ResourceNames:
    """The resources of a vendor, "" for one it hasn't, with MiB of a memory unit and cores a card.

    Where cores are percent there are 100; a percentage resource has 100 for each card too.
    """

    count: str
    memory: str = ""
    memory_unit: int = 1
    cores: str = ""
    cores_per_card: int = 100
    percentage: str = ""


@dataclass(frozen=True)
class NodeAnnotations:
    """Where a node's cards stand, and how; none: the scheduler reckons them from its capacity.

    `report` is how the node side answers the handshake; none: it doesn't, allocatable devices do.
    """

    register: str = ""
    encoding: Encoding | None = None
    handshake: str = ""
    report: ReportStyle | None = None


@dataclass(frozen=True)
class PodAnnotations:
    """Where a pod's devices stand; no `to_allocate`: the vendor's plugin reads something else."""

    allocated: str
    to_allocate: str = ""

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the pair that most vendors have."""
        return cls(f"hami.io/{name}-devices-allocated", f"hami.io/{name}-devices-to-allocate")


@dataclass(frozen=True)
class HamiVendor:
    """A vendor as the scheduler knows it, by its word.

    - maker: whose chips these are
    - slots: devices of the count resource on a card, for as many containers; None: as registered
    - has_model_as_type: a card's type is its model, with the word in it; else it is the word
    - cards_in_network_0: cards before the first with NetworkID 1; None: no NetworkID at all
    """

    word: str
    maker: str
    resources: ResourceNames
    pods: PodAnnotations
    node: NodeAnnotations = NodeAnnotations()
    lock: Lock | None = None
    slots: int | None = None
    has_model_as_type: bool = False
    environment: Environment = NONE
    cards_in_network_0: int | None = None

    def device_type(self, product: str) -> str:
        """Return the type that a card is registered with; the scheduler looks for its word."""
        if not self.has_model_as_type:
            return self.word
        return product if self.word.lower() in product.lower() else f"{self.word}-{product}"

    def custom_info(self, index: int) -> dict[str, Any]:
        """Return what else a card is registered with."""
        if self.cards_in_network_0 is None:
            return {}
        return {"NetworkID": int(index >= self.cards_in_network_0)}
