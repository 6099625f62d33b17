"""MetaX: sliced cards, and whole ones. No variables are known: its plugins are images only."""

from hami_mock.hami.kinds import HAMI_LOCK, Encoding
from hami_mock.vendors.scheduling import ConfigKeys, NodeAnnotations, Scheduling, pod_annotations
from hami_mock.vendors.vendor import Offer, Role, Vendor, core_offer, memory_offer

METAX = Vendor(
    maker="metax",
    title="MetaX",
    model="C500",
    uuid_format="GPU-{uuid}",
    words=("Metax-SGPU",),
    offers=(
        Offer(Role.SLOTS, "metax-tech.com/sgpu", "metax-resource-name"),
        memory_offer("metax", "metax-tech.com/vmemory", "G", unit=1024),
        core_offer("metax", "metax-tech.com/vcore", "H"),
    ),
    hami=Scheduling(
        node=NodeAnnotations("metax-tech.com/node-gpu-devices", Encoding.METAX),
        pods=pod_annotations("metax-sgpu"),
        lock=HAMI_LOCK,
        # All types are called the same; the model has another place.
        custom=lambda _word, _index, product: {"Model": product},
    ),
    config=ConfigKeys(
        "metax", "resourceVCountName", memory="resourceVMemoryName", cores="resourceVCoreName"
    ),
)

METAX_GPU = METAX.whole(
    "gpu",
    "Metax-GPU",
    "metax-tech.com/gpu",
    Scheduling(pods=pod_annotations("metax-gpu")),
    ConfigKeys("metax"),
)
