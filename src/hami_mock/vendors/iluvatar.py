"""Iluvatar."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hami_mock.hami.kinds import COLON, HAMI_LOCK
from hami_mock.kubelet.unit_ids import LEAD
from hami_mock.vendors.labelling import CardsHere, Labelling, LabelSet
from hami_mock.vendors.scheduling import ConfigSection, Scheduling, pod_annotations, reporting_node
from hami_mock.vendors.vendor import CountRule, Offer, Role, Vendor

if TYPE_CHECKING:
    from hami_mock.vendors.exporter import Exporter


def _exporter() -> "Exporter":
    from hami_mock.vendors import iluvatar_exporter

    return iluvatar_exporter.EXPORTER


def _labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    from hami_mock.vendors import iluvatar_labels

    return iluvatar_labels.labels(wanted, here)


ILUVATAR = Vendor(
    maker="iluvatar",
    title="Iluvatar",
    model="MR-V100",
    uuid_format="GPU-{uuid}",
    words=("MR-V100", "MR-V50", "BI-V150", "BI-V100"),
    visible_devices=("ILUVATAR_COREX_VISIBLE_DEVICES", "IX_VISIBLE_DEVICES"),
    cards=2,
    offers=(
        Offer(
            Role.SLOTS, "iluvatar.ai/vgpu", "iluvatar-resource-name", "", "iluvatar.ai/{chip}-vgpu"
        ),
        Offer(
            Role.CORES,
            "iluvatar.ai/MR-V100.vCore",
            "iluvatar-core-name",
            "^",
            "iluvatar.ai/{chip}.vCore",
        ),
        Offer(
            Role.MEMORY,
            "",
            "iluvatar-memory-name",
            f"{LEAD}C",
            "iluvatar.ai/{chip}.vMem",
            memory_unit=256,
        ),
    ),
    counted=CountRule(Role.CORES, Role.SLOTS, 10, 1),
    hami=Scheduling(
        node=reporting_node("{word}-register", "{word}", COLON),
        pods=pod_annotations("{word}"),
        lock=HAMI_LOCK,
        switch="--enable-iluvatar",
        sums_cores=True,
    ),
    labels=Labelling(
        pci="1e3e",
        pci_class="1200",
        make=_labels,
        stamps=frozenset({"iluvatar.com/ix.timestamp"}),
    ),
    config=ConfigSection("iluvatars", chips=lambda root: root.sections("iluvatars")),
    exporter=_exporter,
)
