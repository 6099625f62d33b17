"""Enflame: cards in slices (DRS), and whole ones."""

from hami_mock.vendors.scheduling import (
    ConfigKeys,
    NodeAnnotations,
    PodAnnotations,
    Scheduling,
    pod_annotations,
)
from hami_mock.vendors.vendor import Offer, Role, Vendor, core_offer, memory_offer

ENFLAME = Vendor(
    maker="enflame",
    title="Enflame",
    model="S60",
    uuid_format="{uuid}",
    words=("Enflame",),
    offers=(
        Offer(Role.SLOTS, "enflame.com/drs-gcu", "enflame-resource-name"),
        # In GiB; but a number far above what a card has is taken for MiB.
        memory_offer("enflame", "enflame.com/gcu-memory", "I", unit=1024),
        core_offer("enflame", "enflame.com/gcu-core", "J"),
    ),
    hami=Scheduling(
        # Not cards, but slices and profiles: none of the encodings.
        node=NodeAnnotations("enflame.com/gcu-drs-capacity"),
        pods=PodAnnotations("hami.io/enflame-vgpu-devices-allocated"),
    ),
    config=ConfigKeys(
        "enflame",
        "resourceNameDRSGCU",
        memory="resourceNameGCUMemory",
        cores="resourceNameGCUCore",
    ),
)

ENFLAME_GCU = ENFLAME.whole(
    "gcu",
    "GCU",
    "enflame.com/gcu",
    Scheduling(pods=pod_annotations("enflame-gcu")),
    ConfigKeys("enflame", "resourceNameGCU"),
)
