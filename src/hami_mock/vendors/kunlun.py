"""Kunlunxin: sliced cards, and whole ones. No variables are known of its plugins for HAMi."""

from hami_mock.hami.kinds import HAMI_LOCK, Encoding, ReportStyle
from hami_mock.vendors.scheduling import (
    ConfigKeys,
    NodeAnnotations,
    PodAnnotations,
    Scheduling,
    pod_annotations,
)
from hami_mock.vendors.vendor import Offer, Role, Vendor, memory_offer

KUNLUN = Vendor(
    maker="kunlun",
    title="Kunlunxin",
    model="P800",
    uuid_format="{uuid}",
    words=("XPU",),
    offers=(
        Offer(Role.SLOTS, "kunlunxin.com/vxpu", "kunlun-resource-name"),
        memory_offer("kunlun", "kunlunxin.com/vxpu-memory", "M"),
    ),
    hami=Scheduling(
        node=NodeAnnotations(
            "hami.io/node-register-xpu",
            Encoding.JSON,
            "hami.io/node-handshake-xpu",
            ReportStyle.DOTTED,
        ),
        pods=pod_annotations("xpu"),
        lock=HAMI_LOCK,
    ),
    config=ConfigKeys(
        "kunlun", "resourceVCountName", memory="resourceVMemoryName", cores="resourceVCoreName"
    ),
)

KUNLUN_XPU = KUNLUN.whole(
    "xpu",
    "kunlun",
    "kunlunxin.com/xpu",
    Scheduling(pods=PodAnnotations("hami.io/kunlun-allocated")),
    ConfigKeys("kunlun"),
)
