"""Huawei's Ascend."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hami_mock.hami.kinds import HAMI_CORE, HAMI_LOCK
from hami_mock.kubelet.unit_ids import LEAD
from hami_mock.vendors.labelling import CardsHere, Labelling, LabelSet
from hami_mock.vendors.scheduling import ConfigSection, Scheduling, pod_annotations, reporting_node
from hami_mock.vendors.vendor import CountRule, Identity, Offer, Role, Vendor

if TYPE_CHECKING:
    from hami_mock.hami.config_section import Section
    from hami_mock.vendors.exporter import Exporter
    from hami_mock.vendors.handout import Container, Given
    from hami_mock.vendors.scheduling import CardFacts
    from hami_mock.vendors.smi import Tool

_SOFT_SLICING = "hami-vnpu-core"
_POD_MODE = "huawei.com/vnpu-mode"

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


def _network(word: str, index: int, _product: str) -> Mapping[str, Any]:
    """Four of the 910's cards are in one ring and the others in the next; the 910C's are in one."""
    if not word.startswith("Ascend910"):
        return {}
    return {"NetworkID": int(index >= 4 and word != "Ascend910C")}


def _soft_slicing(_cards: "Sequence[CardFacts]", mode: str) -> Mapping[str, str]:
    return {_SOFT_SLICING: str(mode == HAMI_CORE).lower()}


def _hand_out(container: "Container") -> "Given":
    """A chip is cut by a template, unless the pod wants HAMi's library to slice it."""
    from hami_mock.vendors.handout import Given, environment

    if container.annotations.get(_POD_MODE) == HAMI_CORE:
        quota = (("NPU_MEM_QUOTA", "{memory}"), ("NPU_PRIORITY", "{cores}"))
        return Given(environment(container, quota))
    templates = _templates(container.annotations.get(f"huawei.com/{container.hami.word}") or "[]")
    found = next(filter(None, (templates.get(device.id) for device in container.devices)), "")
    specs = (("ASCEND_VNPU_SPECS", "{template}"),)
    return Given(environment(container, specs, template=found))


def _templates(text: str) -> dict[str, str]:
    """Return the vNPU template of each card; one that is given whole has none. Raises Malformed."""
    from hami_mock.hami.go_values import Fields, json_list

    rows = [Fields(row, f"device {i}") for i, row in enumerate(json_list(text))]
    return {row.get("UUID", str): name for row in rows if (name := row.get("temp", str))}


def _chips(root: "Section") -> "list[Section]":
    """`vnpus` is a mapping with the chips in it since HAMi 2.9, a list of them before."""
    if isinstance(root.values.get("vnpus"), list):
        return root.sections("vnpus")
    return root.section("vnpus").sections("configs")


def _slots(chip: "Section") -> int:
    for key in ("memoryCapacity", "aiCore", "aiCPU"):
        chip.whole(key)
    templates = chip.sections("templates")
    memory = [template.whole("memory", 1, least=1) for template in templates]
    for template in templates:
        template.text("name", needed=True)
        for key in ("aiCore", "aiCPU"):
            template.whole(key)
    # The plugin takes the first template for the smallest.
    allocatable = chip.whole("memoryAllocatable")
    return allocatable // memory[0] if memory else 1


def _options(root: "Section", _node_name: str) -> "Mapping[str, tuple[object, str]]":
    if isinstance(root.values.get("vnpus"), list) or not root.section("vnpus").flag("hamiVnpuCore"):
        return {}
    return {"mode": (HAMI_CORE, "vnpus.hamiVnpuCore")}


def _smi() -> "tuple[Tool, ...]":
    from hami_mock.vendors import ascend_smi

    return ascend_smi.NPU_SMI, ascend_smi.NPU_SMI_21


def _exporter() -> "Exporter":
    from hami_mock.vendors import ascend_exporter

    return ascend_exporter.EXPORTER


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
        custom=_network,
        beside=_soft_slicing,
        hand_out=_hand_out,
    ),
    labels=Labelling({"ascend": "on"}, pci="19e5", pci_class="1200", make=_labels),
    config=ConfigSection(
        "vnpus", factor="memoryFactor", chips=_chips, slots=_slots, options=_options
    ),
    exporter=_exporter,
    smi=_smi,
)
