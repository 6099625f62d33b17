"""The vendors of HAMi 2.10, as data: what the scheduler reads and writes for each.

A vendor here is what the scheduler takes for one, so each chip of Ascend and Iluvatar is. These are
the defaults of HAMi's chart; resources can have other names in its configuration.
"""

import sys

from hami_mock.hami import environment
from hami_mock.hami.handshake import ReportStyle
from hami_mock.hami.lock import Lock
from hami_mock.hami.register import Encoding
from hami_mock.hami.vendor import HamiVendor, NodeAnnotations, PodAnnotations, ResourceNames


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


def _iluvatar(chip: str) -> HamiVendor:
    base = f"iluvatar.ai/{chip}"
    names = ResourceNames(
        f"{base}-vgpu", memory=f"{base}.vMem", memory_unit=256, cores=f"{base}.vCore"
    )
    return iluvatar(chip, names)


def _ascend(chip: str, slots: int) -> HamiVendor:
    base = f"huawei.com/Ascend{chip}"
    names = ResourceNames(base, memory=f"{base}-memory", cores=f"{base}-core")
    return ascend(f"Ascend{chip}", names, slots)


NVIDIA = HamiVendor(
    word="NVIDIA",
    maker="nvidia",
    resources=ResourceNames(
        "nvidia.com/gpu",
        memory="nvidia.com/gpumem",
        cores="nvidia.com/gpucores",
        percentage="nvidia.com/gpumem-percentage",
    ),
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
    resources=ResourceNames(
        "cambricon.com/vmlu",
        memory="cambricon.com/mlu.smlu.vmemory",
        memory_unit=256,
        cores="cambricon.com/mlu.smlu.vcore",
    ),
    pods=PodAnnotations.named("cambricon-mlu"),
    lock=Lock.CAMBRICON,
    slots=100,
    environment=environment.CAMBRICON,
)
HYGON = HamiVendor(
    word="DCU",
    maker="hygon",
    resources=ResourceNames(
        "hygon.com/dcunum", memory="hygon.com/dcumem", cores="hygon.com/dcucores"
    ),
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
    resources=ResourceNames("metax-tech.com/gpu"),
    pods=PodAnnotations.named("metax-gpu"),
    slots=1,
)
METAX_SGPU = HamiVendor(
    word="Metax-SGPU",
    maker="metax",
    resources=ResourceNames(
        "metax-tech.com/sgpu",
        memory="metax-tech.com/vmemory",
        memory_unit=1024,
        cores="metax-tech.com/vcore",
    ),
    node=NodeAnnotations("metax-tech.com/node-gpu-devices", Encoding.METAX),
    pods=PodAnnotations.named("metax-sgpu"),
    lock=Lock.HAMI,
)
ENFLAME_GCU = HamiVendor(
    word="GCU",
    maker="enflame",
    resources=ResourceNames("enflame.com/gcu"),
    pods=PodAnnotations.named("enflame-gcu"),
    slots=1,
)
ENFLAME_DRS = HamiVendor(
    word="Enflame",
    maker="enflame",
    # Memory is in GiB, but a number far above what a card has is taken for MiB.
    resources=ResourceNames(
        "enflame.com/drs-gcu",
        memory="enflame.com/gcu-memory",
        memory_unit=1024,
        cores="enflame.com/gcu-core",
    ),
    # Not cards, but slices and profiles: none of the encodings.
    node=NodeAnnotations("enflame.com/gcu-drs-capacity"),
    pods=PodAnnotations("hami.io/enflame-vgpu-devices-allocated"),
)
MTHREADS = HamiVendor(
    word="Mthreads",
    maker="mthreads",
    resources=ResourceNames(
        "mthreads.com/vgpu",
        memory="mthreads.com/sgpu-memory",
        memory_unit=512,
        cores="mthreads.com/sgpu-core",
        cores_per_card=16,
    ),
    pods=PodAnnotations("hami.io/mthreads-vgpu-devices-allocated"),
    slots=100,
)
KUNLUN_XPU = HamiVendor(
    word="kunlun",
    maker="kunlun",
    resources=ResourceNames("kunlunxin.com/xpu"),
    pods=PodAnnotations("hami.io/kunlun-allocated"),
    slots=1,
)
KUNLUN_VXPU = HamiVendor(
    word="XPU",
    maker="kunlun",
    resources=ResourceNames("kunlunxin.com/vxpu", memory="kunlunxin.com/vxpu-memory"),
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
    resources=ResourceNames(
        "aws.amazon.com/neuron", cores="aws.amazon.com/neuroncore", cores_per_card=2
    ),
    pods=PodAnnotations("hami.io/aws-neuron-devices-allocated"),
    slots=1,
)
AMD = HamiVendor(
    word="AMD",
    maker="amd",
    # A card is registered with its compute units as cores; pods ask for percent of them.
    resources=ResourceNames("amd.com/gpu", memory="amd.com/gpumem", cores="amd.com/gpucores"),
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
    resources=ResourceNames("vastaitech.com/va"),
    node=NodeAnnotations(
        "hami.io/node-va-register", Encoding.JSON, "hami.io/node-handshake-va", ReportStyle.DOTTED
    ),
    pods=PodAnnotations.named("Vastai"),
    lock=Lock.HAMI,
)
BIREN = HamiVendor(
    word="Biren",
    maker="biren",
    resources=ResourceNames("birentech.com/gpu"),
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
ILUVATAR = tuple(map(_iluvatar, ("MR-V100", "MR-V50", "BI-V150", "BI-V100")))
# Slots: the allocatable memory over the smallest template's, as the plugin reckons them.
ASCEND = (
    _ascend("910A", 15),
    _ascend("910B2", 8),
    _ascend("910B3", 4),
    _ascend("910B4-1", 4),
    _ascend("910B4", 4),
    _ascend("310P", 7),
    _ascend("910C", 4),
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
