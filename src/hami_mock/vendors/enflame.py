"""Enflame: cards in slices (DRS), and whole ones."""

from hami_mock.vendors.scheduling import (
    ConfigSection,
    NodeAnnotations,
    PodAnnotations,
    Scheduling,
    pod_annotations,
)
from hami_mock.vendors.vendor import Vendor, core_offer, memory_offer, slot_offer

ENFLAME = Vendor(
    maker="enflame",
    title="Enflame",
    model="S60",
    uuid_format="{uuid}",
    words=("Enflame",),
    offers=(
        slot_offer("enflame", "enflame.com/drs-gcu", key="resourceNameDRSGCU"),
        # In GiB; but a number far above what a card has is taken for MiB.
        memory_offer("enflame", "enflame.com/gcu-memory", "I", 1024, key="resourceNameGCUMemory"),
        core_offer("enflame", "enflame.com/gcu-core", "J", key="resourceNameGCUCore"),
    ),
    hami=Scheduling(
        # Not cards, but slices and profiles: none of the encodings.
        node=NodeAnnotations("enflame.com/gcu-drs-capacity"),
        pods=PodAnnotations("hami.io/enflame-vgpu-devices-allocated"),
    ),
    config=ConfigSection("enflame"),
)

ENFLAME_GCU = ENFLAME.whole(
    "gcu",
    "GCU",
    slot_offer("enflame-gcu", "enflame.com/gcu", key="resourceNameGCU"),
    Scheduling(pods=pod_annotations("enflame-gcu")),
)
