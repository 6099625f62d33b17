"""Node labels that tools look for: which sets there are, and what a vendor says of its own.

Every agent loads this, so it is light: what makes the labels stands in files of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from hami_mock.vendors.catalog import Model


class LabelSet(StrEnum):
    """Who else would write such labels. Of two that write the same one, the first here wins."""

    GFD = "gfd"
    OPERATOR = "operator"
    OPERATOR_DEPLOY = "operator-deploy"
    FAKE_GPU_OPERATOR = "fake-gpu-operator"
    NFD = "nfd"
    HAMI = "hami"
    VENDORS = "vendors"
    GKE = "gke"
    EKS = "eks"
    AKS = "aks"
    KARPENTER = "karpenter"


ALL = "all"
# Those of a cloud are true of one cloud only, and those of the operator let its pods come.
ON_REQUEST = frozenset(
    {
        LabelSet.OPERATOR_DEPLOY,
        LabelSet.GKE,
        LabelSet.EKS,
        LabelSet.AKS,
        LabelSet.KARPENTER,
    }
)


class LabelledCard(Protocol):
    """What labels tell of a card."""

    @property
    def model(self) -> "Model": ...
    @property
    def memory(self) -> int: ...


class CardsHere(NamedTuple):
    """A vendor's cards on a node, at least one, and how they are given out.

    - slots: containers that may share a card
    - mode: how cards are sliced, where there are several ways
    - now: seconds since 1970, for labels that say when they were written
    - driver: the version of NVIDIA's driver (`--driver-version`)
    """

    cards: Sequence[LabelledCard]
    slots: int = 1
    mode: str = ""
    now: int = 0
    driver: str = ""


class Labelling(NamedTuple):
    """The labels that are known of a vendor's cards.

    - hami: what HAMi's charts and WebUI select nodes by
    - pci: the maker's PCI vendor ID
    - pci_class: the PCI class of its cards, and of models that have another; empty: not known
    - make: the labels of a set beyond those
    - stamps: labels whose value is when they were written; a change of them alone is none
    """

    hami: Mapping[str, str] | None = None
    pci: str = ""
    pci_class: str = ""
    pci_classes: Mapping[str, str] = MappingProxyType({})
    make: Callable[[LabelSet, CardsHere], Mapping[str, str]] = lambda *_: {}
    stamps: frozenset[str] = frozenset()

    def of(self, wanted: LabelSet, here: CardsHere) -> dict[str, str]:
        found: dict[str, str] = {}
        if wanted is LabelSet.HAMI:
            found |= self.hami or {}
        if wanted is LabelSet.NFD and self.pci:
            names = (card.model.name for card in here.cards)
            classes = {self.pci_classes.get(name, self.pci_class) for name in names}
            # NFD's own default has the class in the name, the GPU operator's setting hasn't.
            for name in (self.pci, *(f"{each}_{self.pci}" for each in classes if each)):
                found[f"feature.node.kubernetes.io/pci-{name}.present"] = "true"
        return {**found, **self.make(wanted, here)}


UNLABELLED = Labelling()
