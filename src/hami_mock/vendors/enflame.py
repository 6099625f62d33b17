"""Enflame: cards in slices (DRS), and whole ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hami_mock.hami.kinds import Encoding
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import Labelling
from hami_mock.vendors.scheduling import (
    ConfigSection,
    NodeAnnotations,
    PodAnnotations,
    Scheduling,
    pod_annotations,
)
from hami_mock.vendors.vendor import Identity, Vendor, core_offer, memory_offer, slot_offer

if TYPE_CHECKING:
    from hami_mock.hami.register import Codec
    from hami_mock.vendors.handout import Claim, Container, Given

WORD = "Enflame"
"""What the scheduler calls a card of any model, if it has slices."""

DEVICE_ID = "{node}-enflame-drs-{index}"
"""What the scheduler calls one of these, for its annotation has no IDs."""


def _codec() -> "Codec":
    from hami_mock.vendors import enflame_register

    return enflame_register


ENCODING = Encoding("Enflame's JSON", _codec)


def _next_claim(annotations: Mapping[str, str], size: int) -> "Claim | None":
    from hami_mock.vendors.enflame_drs import next_claim

    return next_claim(annotations, size)


def _hand_out(container: "Container") -> "Given":
    from hami_mock.vendors.enflame_drs import hand_out

    return hand_out(container)


ENFLAME = Vendor(
    maker="enflame",
    title="Enflame",
    model="S60",
    uuid_format="{uuid}",
    words=(WORD,),
    visible_devices=("ENFLAME_VISIBLE_DEVICES",),
    identity=Identity.INDEX,
    offers=(
        slot_offer("enflame", "enflame.com/drs-gcu", key="resourceNameDRSGCU"),
        # In GiB; but a number far above what a card has is taken for MiB.
        memory_offer("enflame", "enflame.com/gcu-memory", "I", 1024, key="resourceNameGCUMemory"),
        core_offer("enflame", "enflame.com/gcu-core", "J", key="resourceNameGCUCore"),
    ),
    hami=Scheduling(
        node=NodeAnnotations("enflame.com/gcu-drs-capacity", ENCODING),
        pods=PodAnnotations("hami.io/enflame-vgpu-devices-allocated"),
        device_id=DEVICE_ID,
        asks_slices=True,
        sets_bind_phase=False,
        next_claim=_next_claim,
        asking=Asking(selectors=selectors("enflame.com"), cores_follow_memory=True),
        hand_out=_hand_out,
    ),
    labels=Labelling(pci="1e36", pci_class="1200"),
    config=ConfigSection("enflame"),
)

ENFLAME_GCU = ENFLAME.whole(
    "gcu",
    "GCU",
    slot_offer("enflame-gcu", "enflame.com/gcu", key="resourceNameGCU"),
    Scheduling(pods=pod_annotations("enflame-gcu")),
)
