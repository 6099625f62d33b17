"""Cambricon."""

from datetime import timedelta
from typing import TYPE_CHECKING

from hami_mock.hami.kinds import Lock
from hami_mock.kubelet.unit_ids import LEAD
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import Labelling
from hami_mock.vendors.scheduling import ConfigSection, Scheduling, pod_annotations
from hami_mock.vendors.vendor import CountRule, Identity, Offer, Role, Vendor, slot_offer

if TYPE_CHECKING:
    from hami_mock.vendors.exporter import Exporter
    from hami_mock.vendors.smi import Tool


def _smi() -> "tuple[Tool, ...]":
    from hami_mock.vendors import cambricon_smi

    return (cambricon_smi.CNMON,)


def _exporter() -> "Exporter":
    from hami_mock.vendors import cambricon_exporter

    return cambricon_exporter.EXPORTER


CAMBRICON = Vendor(
    maker="cambricon",
    flag_prefix="mlu",
    title="Cambricon",
    model="MLU370-X8",
    uuid_format="MLU-{uuid}",
    words=("MLU",),
    visible_devices=("MLU_VISIBLE_DEVICES", "CAMBRICON_VISIBLE_DEVICES"),
    identity=Identity.INDEX,
    cards=2,
    offers=(
        slot_offer("mlu", "cambricon.com/vmlu"),
        # Not mlu-resource-memory-name: that is Ascend's, see there.
        Offer(
            Role.MEMORY,
            "",
            "mlu-memory-name",
            f"{LEAD}A",
            "cambricon.com/mlu.smlu.vmemory",
            memory_unit=256,
        ),
        Offer(Role.CORES, "", "mlu-core-name", f"{LEAD}B", "cambricon.com/mlu.smlu.vcore"),
    ),
    counted=CountRule("cambricon.com/real-mlu-counts", Role.SLOTS, 1, 10),
    hami=Scheduling(
        pods=pod_annotations(
            "cambricon-mlu",
            # HAMi 2.10 corrected the word, Cambricon's own plugin still reads the other one.
            assigned=("CAMBRICON_DSMLU_ASSIGNED", "CAMBRICON_DSMLU_ASSIGHED"),
        ),
        sets_bind_phase=False,
        asking=Asking(100, selectors("cambricon.com")),
        lock=Lock("cambricon.com/dsmlu.lock", timedelta(minutes=2)),
    ),
    labels=Labelling({"mlu": "on"}, pci="cabc"),
    config=ConfigSection("cambricon"),
    exporter=_exporter,
    smi=_smi,
)
