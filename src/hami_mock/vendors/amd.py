"""AMD."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hami_mock.hami.kinds import HAMI_LOCK, JSON
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import CardsHere, Labelling, LabelSet
from hami_mock.vendors.scheduling import ConfigSection, NodeAnnotations, Scheduling, pod_annotations
from hami_mock.vendors.vendor import Vendor, core_offer, memory_offer, slot_offer

if TYPE_CHECKING:
    from hami_mock.vendors.exporter import Exporter
    from hami_mock.vendors.handout import Container, Given
    from hami_mock.vendors.scheduling import CardFacts
    from hami_mock.vendors.smi import Tool

COMPUTE_UNITS = "hami.io/amd-cu-allocated"
"""The annotation that says which compute units a pod has of each card."""


def _hand_out(container: "Container") -> "Given":
    from hami_mock.vendors import amd_compute_units

    return amd_compute_units.hand_out(container)


def _place(_word: str, card: "CardFacts") -> Mapping[str, Any]:
    # A domain has four digits here.
    return {"pciBDF": card.pci_bus_id[4:].lower()}


def _smi() -> "tuple[Tool, ...]":
    from hami_mock.vendors import amd_smi

    return (amd_smi.ROCM_SMI,)


def _exporter() -> "Exporter":
    from hami_mock.vendors import amd_exporter

    return amd_exporter.EXPORTER


def _labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    from hami_mock.vendors import amd_labels

    return amd_labels.labels(wanted, here)


AMD = Vendor(
    maker="amd",
    title="AMD",
    model="MI300X",
    # As ROCR_VISIBLE_DEVICES takes it.
    uuid_format="GPU-{uuid.hex:.16}",
    words=("AMD",),
    visible_devices=("ROCR_VISIBLE_DEVICES",),
    offers=(
        slot_offer("amd", "amd.com/gpu"),
        memory_offer("amd", "amd.com/gpumem", "O"),
        core_offer("amd", "amd.com/gpucores", "P"),
    ),
    hami=Scheduling(
        node=NodeAnnotations("hami.io/node-amd-register", JSON),
        pods=pod_annotations("amd"),
        lock=HAMI_LOCK,
        has_model_as_type=True,
        # Its compute units; pods ask for percent of them.
        registers_cores=True,
        variables=(("HIP_DEVICE_MEMORY_LIMIT", "{memory}m"),),
        custom=_place,
        asking=Asking(100, selectors("amd.com", "gpu-uuid", types="gputype"), of_own_cores=True),
        shared=COMPUTE_UNITS,
        hand_out=_hand_out,
    ),
    labels=Labelling(
        pci="1002",
        pci_class="1200",
        pci_classes={"MI210": "0380", "MI250X": "0380"},
        make=_labels,
    ),
    config=ConfigSection("amd"),
    exporter=_exporter,
    smi=_smi,
)
