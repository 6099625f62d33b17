"""Vastai. No variables are known: its plugin is an image only."""

from hami_mock.hami.kinds import HAMI_LOCK, Encoding, ReportStyle
from hami_mock.vendors.scheduling import ConfigKeys, NodeAnnotations, Scheduling, pod_annotations
from hami_mock.vendors.vendor import Offer, Role, Vendor

VASTAI = Vendor(
    maker="vastai",
    title="Vastai",
    model="VA16",
    uuid_format="{uuid}",
    words=("Vastai",),
    offers=(Offer(Role.SLOTS, "vastaitech.com/va", "vastai-resource-name"),),
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
    config=ConfigKeys("vastai"),
)
