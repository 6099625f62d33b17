"""Biren."""

from hami_mock.hami.kinds import HAMI_LOCK
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.scheduling import ConfigSection, Scheduling, pod_annotations, reporting_node
from hami_mock.vendors.vendor import Identity, Vendor, slot_offer

BIREN = Vendor(
    maker="biren",
    title="Biren",
    model="BR106",
    uuid_format="{uuid}",
    words=("Biren",),
    visible_devices=("BR_PHY_CARDS",),
    identity=Identity.DEVICE_FILE,
    split=1,
    offers=(slot_offer("biren", "birentech.com/gpu"),),
    hami=Scheduling(
        node=reporting_node("biren-register", "biren"),
        pods=pod_annotations("Biren"),
        lock=HAMI_LOCK,
        asking=Asking(selectors=selectors("birentech.com"), no_memory=True),
        # Its plugin means to, but never does.
        says_success=False,
        has_model_as_type=True,
    ),
    config=ConfigSection("biren"),
)
