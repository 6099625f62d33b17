"""Huawei's Ascend."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hami_mock.hami.kinds import HAMI_CORE, HAMI_LOCK
from hami_mock.kubelet.unit_ids import LEAD
from hami_mock.vendors.asking import Asking
from hami_mock.vendors.labelling import CardsHere, Labelling, LabelSet
from hami_mock.vendors.scheduling import ConfigSection, Scheduling, pod_annotations, reporting_node
from hami_mock.vendors.vendor import CountRule, Identity, Offer, Role, Vendor

if TYPE_CHECKING:
    from hami_mock.hami.config_section import Section
    from hami_mock.vendors.dra import DraDriver, Profile
    from hami_mock.vendors.exporter import Exporter
    from hami_mock.vendors.handout import Container, Given
    from hami_mock.vendors.scheduling import CardFacts, ChipConfig, PluginConfig
    from hami_mock.vendors.smi import Tool

_SOFT_SLICING = "hami-vnpu-core"

# The allocatable memory over the smallest template's, as the plugin reckons slots.
_SLOTS = {
    "Ascend910A": 15,
    "Ascend910B2": 8,
    "Ascend910B3": 4,
    "Ascend910B4-1": 4,
    "Ascend910B4": 4,
    "Ascend310P": 7,
    "Ascend910C": 4,
}

# The memory of the templates of HAMi's chart; a share of another size gets the next larger one.
_STEPS = {
    "Ascend910A": (2184, 4369, 8738, 17476),
    "Ascend910B2": (8192, 16384, 32768),
    "Ascend910B3": (16384, 32768),
    "Ascend910B4-1": (16384, 32768),
    "Ascend910B4": (8192, 16384),
    "Ascend310P": (3072, 6144, 12288),
    "Ascend910C": (16384, 32768),
}


def _steps(word: str) -> tuple[int, ...]:
    return _STEPS.get(word, ())


def _network(word: str, card: "CardFacts") -> Mapping[str, Any]:
    """Four of the 910's cards are in one ring and the others in the next; the 910C's are in one."""
    if not word.startswith("Ascend910"):
        return {}
    return {"NetworkID": int(card.index >= 4 and word != "Ascend910C")}


def _soft_slicing(_cards: "Sequence[CardFacts]", mode: str) -> Mapping[str, str]:
    return {_SOFT_SLICING: str(mode == HAMI_CORE).lower()}


def _hand_out(container: "Container") -> "Given":
    from hami_mock.vendors import ascend_handout

    return ascend_handout.hand_out(container)


def _chips(root: "Section") -> "list[Section]":
    from hami_mock.vendors import ascend_config

    return ascend_config.chips(root)


def _chip(section: "Section") -> "ChipConfig":
    from hami_mock.vendors import ascend_config

    return ascend_config.chip(section)


def _options(root: "Section", node_name: str) -> "Mapping[str, tuple[object, str]]":
    from hami_mock.vendors import ascend_config

    return ascend_config.options(root, node_name)


def _plugin(root: "Section", node_name: str) -> "PluginConfig":
    from hami_mock.vendors import ascend_config

    return ascend_config.plugin(root, node_name)


def _smi() -> "tuple[Tool, ...]":
    from hami_mock.vendors import ascend_smi

    return ascend_smi.NPU_SMI, ascend_smi.NPU_SMI_21


def _exporter() -> "Exporter":
    from hami_mock.vendors import ascend_exporter

    return ascend_exporter.EXPORTER


def _dra() -> "Mapping[Profile, DraDriver]":
    from hami_mock.vendors import ascend_dra

    return ascend_dra.DRIVERS


def _labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    from hami_mock.vendors import ascend_labels

    return ascend_labels.labels(wanted, here)


ASCEND = Vendor(
    maker="ascend",
    title="Ascend",
    model="Ascend910B3",
    uuid_format="{die_id}",
    words=tuple(_SLOTS),
    visible_devices=("ASCEND_VISIBLE_DEVICES",),
    identity=Identity.INDEX,
    cards=2,
    split=None,
    modes=("template", HAMI_CORE),
    offers=(
        Offer(
            Role.MEMORY,
            "huawei.com/Ascend910-memory",
            "ascend-resource-memory-name",
            # As many as NVIDIA's: there may be as many units.
            heads="YZabcdefghijklmnopqrstuvwxyz-_.~+=",
            # HAMi's mock names Ascend's memory so; its manifests must keep working.
            flag_aliases=("mlu-resource-memory-name",),
            hami_name="huawei.com/{chip}-memory",
        ),
        Offer(
            Role.SLOTS, "", "ascend-resource-name", "", "huawei.com/{chip}", own_key="resourceName"
        ),
        Offer(Role.CORES, "", "ascend-resource-core-name", f"{LEAD}D", "huawei.com/{chip}-core"),
    ),
    counted=CountRule("huawei.com/Ascend910", Role.MEMORY, 10, 65536),
    hami=Scheduling(
        node=reporting_node("register-{word}", "{word}"),
        pods=pod_annotations("{word}"),
        lock=HAMI_LOCK,
        switch="--enable-ascend",
        slots=_SLOTS,
        registers_cores=True,
        soft_slicing=_SOFT_SLICING,
        numbers_anew=True,
        custom=_network,
        beside=_soft_slicing,
        hand_out=_hand_out,
        asking=Asking(steps=_steps),
    ),
    labels=Labelling({"ascend": "on"}, pci="19e5", pci_class="1200", make=_labels),
    config=ConfigSection(
        "vnpus",
        factor="memoryFactor",
        more=("nodes",),
        chips=_chips,
        chip=_chip,
        options=_options,
        plugin=_plugin,
    ),
    exporter=_exporter,
    smi=_smi,
    dra=_dra,
)
