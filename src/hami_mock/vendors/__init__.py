"""The vendors of HAMi 2.10, as data: what a card of each is called, and what it offers.

Adding one is adding an entry here, its models to catalog.json, and what the scheduler knows of it
to `hami.vendors`, which takes names and units from here.
"""

from dataclasses import replace

from hami_mock.kubelet.unit_ids import LEAD
from hami_mock.vendors.vendor import Identity, Offer, Role, Vendor

__all__ = ["VENDORS", "Identity", "Offer", "Role", "Vendor"]

# Two resources may each need 262,144 IDs of three characters: 34 heads x 89 x 89 are 269,314.
_HEADS_OF_NVIDIA_MEMORY = "0123456789ABCDEFGHIJKLMNOPQRSTUVWX"
_HEADS_OF_ASCEND_MEMORY = "YZabcdefghijklmnopqrstuvwxyz-_.~+="

NVIDIA = Vendor(
    key="nvidia",
    title="NVIDIA",
    model="V100-SXM2-32GB",
    uuid_format="GPU-{uuid}",
    words=("NVIDIA",),
    visible_devices=("NVIDIA_VISIBLE_DEVICES",),
    cards=2,
    modes=("hami-core", "mig"),
    has_xids=True,
    offers=(
        Offer(Role.SLOTS, "nvidia.com/gpu", "resource-name"),
        Offer(Role.CORES, "nvidia.com/gpucores", "resource-cores", heads="@"),
        Offer(Role.MEMORY, "nvidia.com/gpumem", "resource-mem", heads=_HEADS_OF_NVIDIA_MEMORY),
        Offer(
            Role.PERCENTAGE, "nvidia.com/gpumem-percentage", "resource-mem-percentage", heads="%"
        ),
    ),
)

CAMBRICON = Vendor(
    key="mlu",
    title="Cambricon",
    model="MLU370-X8",
    uuid_format="MLU-{uuid}",
    words=("MLU",),
    visible_devices=("MLU_VISIBLE_DEVICES", "CAMBRICON_VISIBLE_DEVICES"),
    identity=Identity.INDEX,
    cards=2,
    offers=(
        Offer(Role.SLOTS, "cambricon.com/vmlu", "mlu-resource-name"),
        Offer(
            Role.MEMORY,
            "",
            # Not mlu-resource-memory-name: that is Ascend's, see there.
            "mlu-memory-name",
            heads=f"{LEAD}A",
            hami_name="cambricon.com/mlu.smlu.vmemory",
            memory_unit=256,
        ),
        Offer(
            Role.CORES,
            "",
            "mlu-core-name",
            heads=f"{LEAD}B",
            hami_name="cambricon.com/mlu.smlu.vcore",
        ),
    ),
)

ILUVATAR = Vendor(
    key="iluvatar",
    title="Iluvatar",
    model="MR-V100",
    uuid_format="GPU-{uuid}",
    words=("MR-V100", "MR-V50", "BI-V150", "BI-V100"),
    visible_devices=("ILUVATAR_COREX_VISIBLE_DEVICES", "IX_VISIBLE_DEVICES"),
    cards=2,
    offers=(
        Offer(
            Role.SLOTS,
            "iluvatar.ai/vgpu",
            "iluvatar-resource-name",
            hami_name="iluvatar.ai/{chip}-vgpu",
        ),
        Offer(
            Role.CORES,
            "iluvatar.ai/MR-V100.vCore",
            "iluvatar-core-name",
            heads="^",
            hami_name="iluvatar.ai/{chip}.vCore",
        ),
        Offer(
            Role.MEMORY,
            "",
            "iluvatar-memory-name",
            heads=f"{LEAD}C",
            hami_name="iluvatar.ai/{chip}.vMem",
            memory_unit=256,
        ),
    ),
)

ASCEND = Vendor(
    key="ascend",
    title="Ascend",
    model="Ascend910B3",
    uuid_format="{die_id}",
    words=(
        "Ascend910A",
        "Ascend910B2",
        "Ascend910B3",
        "Ascend910B4-1",
        "Ascend910B4",
        "Ascend310P",
        "Ascend910C",
    ),
    visible_devices=("ASCEND_VISIBLE_DEVICES",),
    identity=Identity.INDEX,
    cards=2,
    split=None,
    modes=("template", "hami-core"),
    offers=(
        Offer(
            Role.MEMORY,
            "huawei.com/Ascend910-memory",
            "ascend-resource-memory-name",
            heads=_HEADS_OF_ASCEND_MEMORY,
            # HAMi's mock names Ascend's memory so; its manifests must keep working.
            flag_aliases=("mlu-resource-memory-name",),
            hami_name="huawei.com/{chip}-memory",
        ),
        Offer(Role.SLOTS, "", "ascend-resource-name", hami_name="huawei.com/{chip}"),
        Offer(
            Role.CORES,
            "",
            "ascend-resource-core-name",
            heads=f"{LEAD}D",
            hami_name="huawei.com/{chip}-core",
        ),
    ),
)


def _memory(key: str, name: str, head: str, unit: int = 1) -> Offer:
    flag = f"{key}-resource-memory-name"
    return Offer(Role.MEMORY, name, flag, heads=LEAD + head, memory_unit=unit)


def _cores(key: str, name: str, head: str, per_card: int | None = 100) -> Offer:
    flag = f"{key}-resource-core-name"
    return Offer(Role.CORES, name, flag, heads=LEAD + head, per_card=per_card)


def _whole(sliced: Vendor, key: str, word: str, name: str) -> Vendor:
    """Return the product of a vendor that gives cards out whole, beside the one that slices them.

    On a real node each is a plugin of its own, and a card belongs to one of them.
    """
    return replace(
        sliced,
        key=key,
        title=f"{sliced.title}, whole cards",
        words=(word,),
        split=1,
        is_whole=True,
        offers=(Offer(Role.SLOTS, name, f"{key}-resource-name"),),
    )


# How cards are named is known of Hygon, MetaX and AMD; the others get a plain UUID.
HYGON = Vendor(
    key="hygon",
    title="Hygon",
    model="K100-AI",
    uuid_format="DCU-{uuid.int!s:.14}",
    words=("DCU",),
    split=4,
    offers=(
        Offer(Role.SLOTS, "hygon.com/dcunum", "hygon-resource-name"),
        _memory("hygon", "hygon.com/dcumem", "E"),
        _cores("hygon", "hygon.com/dcucores", "F"),
    ),
)
METAX = Vendor(
    key="metax",
    title="MetaX",
    model="C500",
    uuid_format="GPU-{uuid}",
    words=("Metax-SGPU",),
    offers=(
        Offer(Role.SLOTS, "metax-tech.com/sgpu", "metax-resource-name"),
        _memory("metax", "metax-tech.com/vmemory", "G", unit=1024),
        _cores("metax", "metax-tech.com/vcore", "H"),
    ),
)
METAX_GPU = _whole(METAX, "metax-gpu", "Metax-GPU", "metax-tech.com/gpu")
ENFLAME = Vendor(
    key="enflame",
    title="Enflame",
    model="S60",
    uuid_format="{uuid}",
    words=("Enflame",),
    offers=(
        Offer(Role.SLOTS, "enflame.com/drs-gcu", "enflame-resource-name"),
        _memory("enflame", "enflame.com/gcu-memory", "I", unit=1024),
        _cores("enflame", "enflame.com/gcu-core", "J"),
    ),
)
ENFLAME_GCU = _whole(ENFLAME, "enflame-gcu", "GCU", "enflame.com/gcu")
MTHREADS = Vendor(
    key="mthreads",
    title="Moore Threads",
    model="MTT-S4000",
    uuid_format="{uuid}",
    words=("Mthreads",),
    split=100,
    offers=(
        Offer(Role.SLOTS, "mthreads.com/vgpu", "mthreads-resource-name"),
        _memory("mthreads", "mthreads.com/sgpu-memory", "K", unit=512),
        _cores("mthreads", "mthreads.com/sgpu-core", "L", per_card=16),
    ),
)
KUNLUN = Vendor(
    key="kunlun",
    title="Kunlunxin",
    model="P800",
    uuid_format="{uuid}",
    words=("XPU",),
    offers=(
        Offer(Role.SLOTS, "kunlunxin.com/vxpu", "kunlun-resource-name"),
        _memory("kunlun", "kunlunxin.com/vxpu-memory", "M"),
    ),
)
KUNLUN_XPU = _whole(KUNLUN, "kunlun-xpu", "kunlun", "kunlunxin.com/xpu")
AWS_NEURON = Vendor(
    key="awsneuron",
    title="AWS Neuron",
    model="Inferentia2",
    uuid_format="{uuid}",
    words=("AWSNeuron",),
    split=1,
    is_whole=True,
    offers=(
        Offer(Role.SLOTS, "aws.amazon.com/neuron", "awsneuron-resource-name"),
        # The scheduler divides a node's cores by its cards: 2 on Inferentia2, 4 on the first.
        _cores("awsneuron", "aws.amazon.com/neuroncore", "N", per_card=None),
    ),
)
AMD = Vendor(
    key="amd",
    title="AMD",
    model="MI300X",
    # As ROCR_VISIBLE_DEVICES takes it.
    uuid_format="GPU-{uuid.hex:.16}",
    words=("AMD",),
    visible_devices=("ROCR_VISIBLE_DEVICES",),
    offers=(
        Offer(Role.SLOTS, "amd.com/gpu", "amd-resource-name"),
        _memory("amd", "amd.com/gpumem", "O"),
        _cores("amd", "amd.com/gpucores", "P"),
    ),
)
VASTAI = Vendor(
    key="vastai",
    title="Vastai",
    model="VA16",
    uuid_format="{uuid}",
    words=("Vastai",),
    offers=(Offer(Role.SLOTS, "vastaitech.com/va", "vastai-resource-name"),),
)
BIREN = Vendor(
    key="biren",
    title="Biren",
    model="BR106",
    uuid_format="{uuid}",
    words=("Biren",),
    visible_devices=("BR_PHY_CARDS",),
    split=1,
    offers=(Offer(Role.SLOTS, "birentech.com/gpu", "biren-resource-name"),),
)

VENDORS = (
    NVIDIA,
    CAMBRICON,
    ILUVATAR,
    ASCEND,
    HYGON,
    METAX,
    METAX_GPU,
    ENFLAME,
    ENFLAME_GCU,
    MTHREADS,
    KUNLUN,
    KUNLUN_XPU,
    AWS_NEURON,
    AMD,
    VASTAI,
    BIREN,
)
