"""MetaX: sliced cards, and whole ones. No variables are known: its plugins are images only."""

from typing import TYPE_CHECKING

from hami_mock.hami.kinds import HAMI_LOCK, Encoding
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import Labelling
from hami_mock.vendors.scheduling import ConfigSection, NodeAnnotations, Scheduling, pod_annotations
from hami_mock.vendors.vendor import Vendor, core_offer, memory_offer, slot_offer

if TYPE_CHECKING:
    from hami_mock.hami.register import Codec
    from hami_mock.vendors.exporter import Exporter

WORD = "Metax-SGPU"
"""What the scheduler calls every sliced card, whatever its model."""


def _codec() -> "Codec":
    from hami_mock.vendors import metax_register

    return metax_register


ENCODING = Encoding("Metax's JSON", _codec)


def _exporter() -> "Exporter":
    from hami_mock.vendors import metax_exporter

    return metax_exporter.EXPORTER


METAX = Vendor(
    maker="metax",
    title="MetaX",
    model="C500",
    uuid_format="GPU-{uuid}",
    words=(WORD,),
    offers=(
        slot_offer("metax", "metax-tech.com/sgpu", key="resourceVCountName"),
        memory_offer("metax", "metax-tech.com/vmemory", "G", 1024, key="resourceVMemoryName"),
        core_offer("metax", "metax-tech.com/vcore", "H", key="resourceVCoreName"),
    ),
    hami=Scheduling(
        node=NodeAnnotations("metax-tech.com/node-gpu-devices", ENCODING),
        pods=pod_annotations("metax-sgpu"),
        lock=HAMI_LOCK,
        # All types are called the same; the model has another place.
        custom=lambda _word, card: {"Model": card.model.product},
        asking=Asking(100, selectors("metax-tech.com")),
    ),
    labels=Labelling({"metax-tech.com/gpu.installed": "true"}, pci="9999", pci_class="0380"),
    config=ConfigSection("metax"),
    exporter=_exporter,
)

METAX_GPU = METAX.whole(
    "gpu",
    "Metax-GPU",
    slot_offer("metax-gpu", "metax-tech.com/gpu"),
    Scheduling(pods=pod_annotations("metax-gpu")),
)
