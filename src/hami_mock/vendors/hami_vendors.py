"""The vendors of HAMi 2.10, as data: what the scheduler reads and writes for each.

A vendor here is what the scheduler takes for one, so each chip of Ascend and Iluvatar is. Words,
resources and units are those of `hami_mock.vendors`, the defaults of HAMi's chart; resources can
have other names in its configuration.
"""

import sys

from hami_mock import vendors as makers
from hami_mock.hami import environment
from hami_mock.hami.handshake import ReportStyle
from hami_mock.hami.lock import Lock
from hami_mock.hami.register import Encoding
from hami_mock.vendors.hami_vendor import HamiVendor, NodeAnnotations, PodAnnotations, ResourceNames
from hami_mock.vendors.vendor import Role, Vendor


def iluvatar(word: str, resources: ResourceNames) -> HamiVendor:
    """Return one of Iluvatar's chips; the scheduler makes the names of its word."""
    return HamiVendor(
        word=word,
        maker="iluvatar",
        resources=resources,
        node=NodeAnnotations(
            f"hami.io/node-{word}-register",
            Encoding.COLON,
            f"hami.io/node-handshake-{word}",
            ReportStyle.DOTTED,
        ),
        pods=PodAnnotations.named(word),
        lock=Lock.HAMI,
        environment=environment.ILUVATAR,
    )


def ascend(word: str, resources: ResourceNames, slots: int) -> HamiVendor:
    """Return one of Ascend's chips; the scheduler makes the names of its word."""
    return HamiVendor(
        word=word,
        maker="ascend",
        resources=resources,
        node=NodeAnnotations(
            f"hami.io/node-register-{word}",
            Encoding.JSON,
            f"hami.io/node-handshake-{word}",
            ReportStyle.DOTTED,
        ),
        pods=PodAnnotations.named(word),
        lock=Lock.HAMI,
        slots=slots,
        environment=environment.ASCEND,
        cards_in_network_0=_cards_in_network_0(word),
    )


def _cards_in_network_0(word: str) -> int | None:
    """Four of the 910's cards are in one ring and the others in the next; the 910C's are in one."""
    if not word.startswith("Ascend910"):
        return None
    return sys.maxsize if word == "Ascend910C" else 4


def _names(vendor: Vendor, chip: str = "") -> ResourceNames:
    offers = {offer.role: offer for offer in vendor.offers}
    memory, cores = offers.get(Role.MEMORY), offers.get(Role.CORES)
    percentage = offers.get(Role.PERCENTAGE)
    return ResourceNames(
        count=offers[Role.SLOTS].name_in_hami(chip),
        memory=memory.name_in_hami(chip) if memory else "",
        memory_unit=memory.memory_unit if memory else 1,
        cores=cores.name_in_hami(chip) if cores else "",
        # Where the model says how many, 2 is what HAMi takes before it has seen a node.
        cores_per_card=(cores.per_card or 2) if cores else 100,
        percentage=percentage.name_in_hami(chip) if percentage else "",
    )


NVIDIA = HamiVendor(
    word="NVIDIA",
    maker="nvidia",
    resources=_names(makers.NVIDIA),
    # The plugin left the handshake alone from 2.8 on.
    node=NodeAnnotations("hami.io/node-nvidia-register", Encoding.JSON, "hami.io/node-handshake"),
    pods=PodAnnotations.named("vgpu"),
    lock=Lock.HAMI,
    slots=10,
    has_model_as_type=True,
    environment=environment.NVIDIA,
)
CAMBRICON = HamiVendor(
    word="MLU",
    maker="cambricon",
    resources=_names(makers.CAMBRICON),
    pods=PodAnnotations.named("cambricon-mlu"),
    lock=Lock.CAMBRICON,
    slots=100,
    environment=environment.CAMBRICON,
)
HYGON = HamiVendor(
    word="DCU",
    maker="hygon",
    resources=_names(makers.HYGON),
    node=NodeAnnotations(
        "hami.io/node-dcu-register",
        Encoding.COLON,
        "hami.io/node-handshake-dcu",
        ReportStyle.GO,
    ),
    pods=PodAnnotations.named("dcu"),
    lock=Lock.HAMI,
    slots=4,
    has_model_as_type=True,
)
METAX_GPU = HamiVendor(
    word="Metax-GPU",
    maker="metax",
    resources=_names(makers.METAX_GPU),
    pods=PodAnnotations.named("metax-gpu"),
    slots=1,
)
METAX_SGPU = HamiVendor(
    word="Metax-SGPU",
    maker="metax",
    resources=_names(makers.METAX),
    node=NodeAnnotations("metax-tech.com/node-gpu-devices", Encoding.METAX),
    pods=PodAnnotations.named("metax-sgpu"),
    lock=Lock.HAMI,
)
ENFLAME_GCU = HamiVendor(
    word="GCU",
    maker="enflame",
    resources=_names(makers.ENFLAME_GCU),
    pods=PodAnnotations.named("enflame-gcu"),
    slots=1,
)
ENFLAME_DRS = HamiVendor(
    word="Enflame",
    maker="enflame",
    # Memory is in GiB, but a number far above what a card has is taken for MiB.
    resources=_names(makers.ENFLAME),
    # Not cards, but slices and profiles: none of the encodings.
    node=NodeAnnotations("enflame.com/gcu-drs-capacity"),
    pods=PodAnnotations("hami.io/enflame-vgpu-devices-allocated"),
)
MTHREADS = HamiVendor(
    word="Mthreads",
    maker="mthreads",
    resources=_names(makers.MTHREADS),
    pods=PodAnnotations("hami.io/mthreads-vgpu-devices-allocated"),
    slots=100,
)
KUNLUN_XPU = HamiVendor(
    word="kunlun",
    maker="kunlun",
    resources=_names(makers.KUNLUN_XPU),
    pods=PodAnnotations("hami.io/kunlun-allocated"),
    slots=1,
)
KUNLUN_VXPU = HamiVendor(
    word="XPU",
    maker="kunlun",
    resources=_names(makers.KUNLUN),
    node=NodeAnnotations(
        "hami.io/node-register-xpu",
        Encoding.JSON,
        "hami.io/node-handshake-xpu",
        ReportStyle.DOTTED,
    ),
    pods=PodAnnotations.named("xpu"),
    lock=Lock.HAMI,
)
AWS_NEURON = HamiVendor(
    word="AWSNeuron",
    maker="awsneuron",
    resources=_names(makers.AWS_NEURON),
    pods=PodAnnotations("hami.io/aws-neuron-devices-allocated"),
    slots=1,
)
AMD = HamiVendor(
    word="AMD",
    maker="amd",
    # A card is registered with its compute units as cores; pods ask for percent of them.
    resources=_names(makers.AMD),
    node=NodeAnnotations("hami.io/node-amd-register", Encoding.JSON),
    pods=PodAnnotations.named("amd"),
    lock=Lock.HAMI,
    slots=10,
    has_model_as_type=True,
    environment=environment.AMD,
)
VASTAI = HamiVendor(
    word="Vastai",
    maker="vastai",
    resources=_names(makers.VASTAI),
    node=NodeAnnotations(
        "hami.io/node-va-register", Encoding.JSON, "hami.io/node-handshake-va", ReportStyle.DOTTED
    ),
    pods=PodAnnotations.named("Vastai"),
    lock=Lock.HAMI,
)
BIREN = HamiVendor(
    word="Biren",
    maker="biren",
    resources=_names(makers.BIREN),
    node=NodeAnnotations(
        "hami.io/node-biren-register",
        Encoding.JSON,
        "hami.io/node-handshake-biren",
        ReportStyle.DOTTED,
    ),
    pods=PodAnnotations.named("Biren"),
    lock=Lock.HAMI,
    slots=1,
    has_model_as_type=True,
    environment=environment.BIREN,
)
ILUVATAR = tuple(iluvatar(word, _names(makers.ILUVATAR, word)) for word in makers.ILUVATAR.words)
# The allocatable memory over the smallest template's, as the plugin reckons slots.
_ASCEND_SLOTS = {
    "Ascend910A": 15,
    "Ascend910B2": 8,
    "Ascend910B3": 4,
    "Ascend910B4-1": 4,
    "Ascend910B4": 4,
    "Ascend310P": 7,
    "Ascend910C": 4,
}
ASCEND = tuple(
    ascend(word, _names(makers.ASCEND, word), _ASCEND_SLOTS[word]) for word in makers.ASCEND.words
)

VENDORS = (
    NVIDIA,
    CAMBRICON,
    HYGON,
    METAX_GPU,
    METAX_SGPU,
    ENFLAME_GCU,
    ENFLAME_DRS,
    MTHREADS,
    *ILUVATAR,
    KUNLUN_XPU,
    KUNLUN_VXPU,
    AWS_NEURON,
    AMD,
    VASTAI,
    BIREN,
    *ASCEND,
)

BY_WORD = {vendor.word: vendor for vendor in VENDORS}
