"""Biren."""

from hami_mock.hami.kinds import HAMI_LOCK, Encoding, ReportStyle
from hami_mock.vendors.scheduling import ConfigSection, NodeAnnotations, Scheduling, pod_annotations
from hami_mock.vendors.vendor import Vendor, slot_offer

BIREN = Vendor(
    maker="biren",
    title="Biren",
    model="BR106",
    uuid_format="{uuid}",
    words=("Biren",),
    visible_devices=("BR_PHY_CARDS",),
    split=1,
    offers=(slot_offer("biren", "birentech.com/gpu"),),
    hami=Scheduling(
        node=NodeAnnotations(
            "hami.io/node-biren-register",
            Encoding.JSON,
            "hami.io/node-handshake-biren",
            ReportStyle.DOTTED,
        ),
        pods=pod_annotations("Biren"),
        lock=HAMI_LOCK,
        has_model_as_type=True,
    ),
    config=ConfigSection("biren"),
)
