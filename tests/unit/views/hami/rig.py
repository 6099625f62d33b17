"""A node with cards that HAMi knows, and pods as HAMi's scheduler leaves them."""

from collections.abc import Iterable, Mapping
from typing import Any

from hami_mock.hami.assignment import ASSIGNED_NODE, BIND_PHASE, BIND_TIME
from hami_mock.node.cards import Card, CardGroup, make_cards
from hami_mock.node.devices import SlotDevices
from hami_mock.node.hami_side import HamiSide
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.scheduling import UNCONFIGURED, PluginConfig
from hami_mock.vendors.vendor import Offer, Role, Vendor
from tests.makers import BY_WORD, NVIDIA
from tests.unit.builders import NODE, group

MR_V100 = BY_WORD["MR-V100"]
ASCEND_910B3 = BY_WORD["Ascend910B3"]


def cards_of(vendor: Vendor, count: int = 2) -> tuple[Card, ...]:
    return make_cards(NODE, vendor, [group(vendor, numa=[None] * count)])


def count_resource(
    hami: HamiVendor = BY_WORD["NVIDIA"],
    cards: Iterable[Card] | None = None,
    *,
    split: int = 10,
    memory_scaling: float = 1.0,
    core_scaling: float = 1.0,
    mode: str = "",
    has_scores: bool = False,
    plugin: PluginConfig = UNCONFIGURED,
) -> Resource:
    """The count resource of a vendor, with two cards if nothing is said."""
    # Whose cards they are makes no difference otherwise.
    vendor = hami.vendor
    of = tuple(cards) if cards is not None else cards_of(vendor)
    name = hami.resources.count
    return Resource(
        name=name,
        source="--x",
        offer=Offer(Role.SLOTS, name, "x"),
        vendor=vendor,
        cards=of,
        devices=SlotDevices(of, split),
        hami=HamiSide(hami, split, memory_scaling, core_scaling, mode, has_scores, plugin),
    )


def state_with(*resources: Resource) -> NodeState:
    cards = tuple(card for resource in resources for card in resource.cards)
    return NodeState(Node(NODE, cards, resources))


def nvidia_cards(model_group: CardGroup) -> tuple[Card, ...]:
    return make_cards(NODE, NVIDIA, [model_group])


def segment(*cards: str, word: str = "NVIDIA", memory: int = 3000, cores: int = 30) -> str:
    """A container's devices, as the scheduler writes them."""
    return "".join(f"{card},{word},{memory},{cores}:" for card in cards) + ";"


def pod(
    name: str = "p1",
    *,
    phase: str = "Pending",
    bind_phase: str = "allocating",
    bind_time: int = 100,
    node: str = NODE,
    words: Mapping[str, str] | None = None,
    **to_allocate: str,
) -> dict[str, Any]:
    """A pod that was bound; vgpu="…" is its annotation hami.io/vgpu-devices-to-allocate.

    Names that Python doesn't take can be given as `words`.
    """
    annotations = {
        ASSIGNED_NODE: node,
        BIND_PHASE: bind_phase,
        BIND_TIME: str(bind_time),
    }
    for prefix, value in (to_allocate | dict(words or {})).items():
        for suffix in ("to-allocate", "allocated"):
            annotations[f"hami.io/{prefix.replace('_', '-')}-devices-{suffix}"] = value
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "annotations": annotations,
        },
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    }
