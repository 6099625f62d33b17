"""The vendors, as data: what a card of each is called, and which resources it offers.

Adding a vendor is adding an entry here and its models to catalog.json.
"""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a resource counts on a card."""

    SLOTS = "slots"
    MEMORY = "memory"
    CORES = "cores"
    PERCENTAGE = "percentage"


class Identity(StrEnum):
    """How a vendor's visible-devices variable names a card."""

    UUID = "uuid"
    INDEX = "index"


@dataclass(frozen=True)
class Offer:
    """One resource that a vendor's cards offer.

    `flag` is the option that renames it. `heads` are the first characters of its unit IDs
    (`unit_ids`): no two offers of any vendor share one, so no two resources share an ID.
    """

    role: Role
    name: str
    flag: str
    heads: str = ""
    flag_aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vendor:
    """A maker of cards. `key` is the prefix of its flags and its key in the catalog.

    `visible_devices` are the environment variables that tell a container its cards: the vendor's
    plugins of different ages set different ones.
    """

    key: str
    title: str
    model: str
    uuid_format: str
    visible_devices: tuple[str, ...]
    identity: Identity
    offers: tuple[Offer, ...]
    cards: int = 2
    split: int = 10

    def offers_role(self, role: Role) -> bool:
        """Tell whether any resource of this vendor counts that."""
        return any(offer.role is role for offer in self.offers)


# Two resources may each need 262,144 IDs of three characters: 34 heads x 89 x 89 are 269,314.
_HEADS_OF_NVIDIA_MEMORY = "0123456789ABCDEFGHIJKLMNOPQRSTUVWX"
_HEADS_OF_ASCEND_MEMORY = "YZabcdefghijklmnopqrstuvwxyz-_.~+="

NVIDIA = Vendor(
    key="nvidia",
    title="NVIDIA",
    model="V100-SXM2-32GB",
    uuid_format="GPU-{uuid}",
    visible_devices=("NVIDIA_VISIBLE_DEVICES",),
    identity=Identity.UUID,
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
    visible_devices=("MLU_VISIBLE_DEVICES", "CAMBRICON_VISIBLE_DEVICES"),
    identity=Identity.INDEX,
    offers=(Offer(Role.SLOTS, "cambricon.com/vmlu", "mlu-resource-name"),),
)

ILUVATAR = Vendor(
    key="iluvatar",
    title="Iluvatar",
    model="MR-V100",
    uuid_format="GPU-{uuid}",
    visible_devices=("ILUVATAR_COREX_VISIBLE_DEVICES", "IX_VISIBLE_DEVICES"),
    identity=Identity.UUID,
    offers=(
        Offer(Role.SLOTS, "iluvatar.ai/vgpu", "iluvatar-resource-name"),
        Offer(Role.CORES, "iluvatar.ai/MR-V100.vCore", "iluvatar-core-name", heads="^"),
    ),
)

ASCEND = Vendor(
    key="ascend",
    title="Ascend",
    model="Ascend910B3",
    uuid_format="{die_id}",
    visible_devices=("ASCEND_VISIBLE_DEVICES",),
    identity=Identity.INDEX,
    offers=(
        Offer(
            Role.MEMORY,
            "huawei.com/Ascend910-memory",
            "ascend-resource-memory-name",
            heads=_HEADS_OF_ASCEND_MEMORY,
            # HAMi's mock names Ascend's memory so; its manifests must keep working.
            flag_aliases=("mlu-resource-memory-name",),
        ),
    ),
)

VENDORS = (NVIDIA, CAMBRICON, ILUVATAR, ASCEND)
