"""Vastai. No variables are known: its plugin is an image only."""

from hami_mock.hami.kinds import HAMI_LOCK, Encoding, ReportStyle
from hami_mock.vendors.scheduling import ConfigSection, NodeAnnotations, Scheduling, pod_annotations
from hami_mock.vendors.vendor import Vendor, slot_offer

VASTAI = Vendor(
    maker="vastai",
    title="Vastai",
    model="VA16",
    uuid_format="{uuid}",
    words=("Vastai",),
    offers=(slot_offer("vastai", "vastaitech.com/va"),),
    hami=Scheduling(
        node=NodeAnnotations(
            "hami.io/node-va-register",
            Encoding.JSON,
            "hami.io/node-handshake-va",
            ReportStyle.DOTTED,
        ),
        pods=pod_annotations("Vastai"),
        lock=HAMI_LOCK,
    ),
    config=ConfigSection("vastai"),
)
