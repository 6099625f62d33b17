"""Kunlunxin: sliced cards, and whole ones. No variables are known of its plugins for HAMi."""

from hami_mock.hami.kinds import HAMI_LOCK
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import Labelling
from hami_mock.vendors.scheduling import (
    ConfigSection,
    PodAnnotations,
    Scheduling,
    pod_annotations,
    reporting_node,
)
from hami_mock.vendors.vendor import Vendor, memory_offer, slot_offer

KUNLUN = Vendor(
    maker="kunlun",
    title="Kunlunxin",
    model="P800",
    uuid_format="{uuid}",
    words=("XPU",),
    offers=(
        slot_offer("kunlun", "kunlunxin.com/vxpu", key="resourceVCountName"),
        memory_offer("kunlun", "kunlunxin.com/vxpu-memory", "M", key="resourceVMemoryName"),
    ),
    hami=Scheduling(
        node=reporting_node("register-xpu", "xpu"),
        pods=pod_annotations("xpu"),
        lock=HAMI_LOCK,
        asking=Asking(
            selectors=selectors("baidu.com"),
            cores_follow_memory=True,
            steps=lambda _word: (24576, 49152),
        ),
    ),
    labels=Labelling(pci="1d22"),
    config=ConfigSection("kunlun"),
)

KUNLUN_XPU = KUNLUN.whole(
    "xpu",
    "kunlun",
    slot_offer("kunlun-xpu", "kunlunxin.com/xpu"),
    Scheduling(pods=PodAnnotations("hami.io/kunlun-allocated")),
)
