"""Hygon. Its plugin mounts files instead of setting variables."""

from hami_mock.hami.kinds import HAMI_LOCK, Encoding, ReportStyle
from hami_mock.vendors.scheduling import ConfigKeys, NodeAnnotations, Scheduling, pod_annotations
from hami_mock.vendors.vendor import Offer, Role, Vendor, core_offer, memory_offer

HYGON = Vendor(
    maker="hygon",
    title="Hygon",
    model="K100-AI",
    uuid_format="DCU-{uuid.int!s:.14}",
    words=("DCU",),
    split=4,
    offers=(
        Offer(Role.SLOTS, "hygon.com/dcunum", "hygon-resource-name"),
        memory_offer("hygon", "hygon.com/dcumem", "E"),
        core_offer("hygon", "hygon.com/dcucores", "F"),
    ),
    hami=Scheduling(
        node=NodeAnnotations(
            "hami.io/node-dcu-register",
            Encoding.COLON,
            "hami.io/node-handshake-dcu",
            ReportStyle.GO,
        ),
        pods=pod_annotations("dcu"),
        lock=HAMI_LOCK,
        has_model_as_type=True,
    ),
    config=ConfigKeys(
        "hygon", memory="resourceMemoryName", cores="resourceCoreName", factor="memoryFactor"
    ),
)
