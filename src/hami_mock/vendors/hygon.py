"""Hygon. Its plugin mounts files instead of setting variables."""

from typing import TYPE_CHECKING

from hami_mock.hami.kinds import COLON, HAMI_LOCK, ReportStyle
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import Labelling
from hami_mock.vendors.scheduling import ConfigSection, Scheduling, pod_annotations, reporting_node
from hami_mock.vendors.vendor import Vendor, core_offer, memory_offer, slot_offer

if TYPE_CHECKING:
    from hami_mock.vendors.exporter import Exporter
    from hami_mock.vendors.smi import Tool


def _smi() -> "tuple[Tool, ...]":
    from hami_mock.vendors import hygon_smi

    return (hygon_smi.HY_SMI,)


def _exporter() -> "Exporter":
    from hami_mock.vendors import hygon_exporter

    return hygon_exporter.EXPORTER


HYGON = Vendor(
    maker="hygon",
    title="Hygon",
    model="K100-AI",
    uuid_format="DCU-{uuid.int!s:.14}",
    words=("DCU",),
    split=4,
    offers=(
        slot_offer("hygon", "hygon.com/dcunum"),
        memory_offer("hygon", "hygon.com/dcumem", "E"),
        core_offer("hygon", "hygon.com/dcucores", "F"),
    ),
    hami=Scheduling(
        node=reporting_node("dcu-register", "dcu", COLON, ReportStyle.GO),
        pods=pod_annotations("dcu"),
        lock=HAMI_LOCK,
        has_model_as_type=True,
        mode="hami",
        asking=Asking(100, selectors("hygon.com", types="dcutype")),
    ),
    labels=Labelling(
        {"dcu": "on"},
        pci="1d94",
        pci_class="0b40",
        pci_classes={"Z100": "0380", "Z100L": "0380"},
    ),
    config=ConfigSection("hygon", factor="memoryFactor"),
    exporter=_exporter,
    smi=_smi,
)
