"""NVIDIA."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hami_mock.hami.kinds import HAMI_CORE, HAMI_LOCK, JSON, MIG, MIG_ALLOCATIONS, MPS
from hami_mock.vendors.asking import Asking, selectors
from hami_mock.vendors.labelling import CardsHere, Labelling, LabelSet
from hami_mock.vendors.nvidia_versions import OLDEST
from hami_mock.vendors.scheduling import (
    ConfigSection,
    Instances,
    NodeAnnotations,
    Scheduling,
    Scores,
    pod_annotations,
)
from hami_mock.vendors.vendor import Offer, Role, Vendor

if TYPE_CHECKING:
    from hami_mock.hami.config_section import Section
    from hami_mock.hami.mig import MigProfile
    from hami_mock.vendors.catalog import Model
    from hami_mock.vendors.dra import DraDriver, Profile
    from hami_mock.vendors.driver import Driver
    from hami_mock.vendors.exporter import Exporter
    from hami_mock.vendors.handout import Container, Given
    from hami_mock.vendors.instance_profile import Cutting
    from hami_mock.vendors.scheduling import Allowed, CardFacts, MadeInstance, PluginConfig
    from hami_mock.vendors.smi import Tool

# NVLinks between two cards: all of a card's where a switch connects them, else its share.
_NVLINKS = {"pascal": 1, "volta": 2, "turing": 2, "ampere": 12, "hopper": 18, "blackwell": 18}

VGA_CONTROLLERS = frozenset({"RTX-3090", "RTX-4090", "RTX-5090"})
"""All other cards are 3D controllers."""


def _scores(cards: "Sequence[CardFacts]") -> str:
    from hami_mock.hami import scores

    places = (
        scores.Place(card.uuid, card.numa, card.link, _NVLINKS.get(card.model.family, 1))
        for card in cards
    )
    return scores.encode(places)


def _profiles(model: "Model", allowed: "Allowed") -> "tuple[MigProfile, ...]":
    from hami_mock.vendors import nvidia_mig

    return nvidia_mig.profiles(model, allowed)


def _has_rule(card_type: str, allowed: "Allowed") -> bool:
    from hami_mock.vendors import nvidia_mig

    return nvidia_mig.rule_for(card_type, allowed) is not None


def _instances(text: str) -> "list[MadeInstance]":
    from hami_mock.vendors import nvidia_mig

    return nvidia_mig.made(text)


def _hand_out(container: "Container") -> "Given":
    """HAMi's plugin makes an instance for each device of a container, if its cards are cut."""
    from hami_mock.vendors import nvidia_mig
    from hami_mock.vendors.handout import Given, environment

    if container.mode == MIG:
        return nvidia_mig.hand_out(container)
    return Given(environment(container))


def _options(root: "Section", node_name: str) -> "Mapping[str, tuple[object, str]]":
    from hami_mock.vendors import nvidia_config

    return nvidia_config.options(root, node_name)


def _plugin(root: "Section", node_name: str) -> "PluginConfig":
    from hami_mock.vendors import nvidia_config

    return nvidia_config.plugin(root, node_name)


def _cutting() -> "Cutting":
    from hami_mock.vendors import nvidia_mig_profiles

    return nvidia_mig_profiles.CUTTING


def _smi() -> "tuple[Tool, ...]":
    from hami_mock.vendors import nvidia_smi

    return (nvidia_smi.NVIDIA_SMI,)


def _exporter() -> "Exporter":
    from hami_mock.vendors import nvidia_exporter

    return nvidia_exporter.EXPORTER


def _driver() -> "Driver":
    from hami_mock.vendors import nvidia_root

    return nvidia_root.DRIVER


def _dra() -> "Mapping[Profile, DraDriver]":
    from hami_mock.vendors import nvidia_dra

    return nvidia_dra.DRIVERS


def _labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    from hami_mock.vendors import nvidia_labels

    return nvidia_labels.labels(wanted, here)


NVIDIA = Vendor(
    maker="nvidia",
    title="NVIDIA",
    model="V100-SXM2-32GB",
    uuid_format="GPU-{uuid}",
    words=("NVIDIA",),
    visible_devices=("NVIDIA_VISIBLE_DEVICES",),
    cards=2,
    modes=(HAMI_CORE, MIG, MPS),
    has_xids=True,
    offers=(
        Offer(Role.SLOTS, "nvidia.com/gpu", "resource-name"),
        Offer(Role.CORES, "nvidia.com/gpucores", "resource-cores", heads="@"),
        Offer(
            Role.MEMORY,
            "nvidia.com/gpumem",
            "resource-mem",
            # There may be 262,144 IDs of three characters: 34 heads x 89 x 89 are 269,314.
            heads="0123456789ABCDEFGHIJKLMNOPQRSTUVWX",
        ),
        Offer(
            Role.PERCENTAGE, "nvidia.com/gpumem-percentage", "resource-mem-percentage", heads="%"
        ),
    ),
    hami=Scheduling(
        # The plugin left the handshake alone from 2.8 on.
        node=NodeAnnotations("hami.io/node-nvidia-register", JSON, "hami.io/node-handshake"),
        pods=pod_annotations("vgpu"),
        lock=HAMI_LOCK,
        has_model_as_type=True,
        scores=Scores("hami.io/node-nvidia-score", _scores),
        cordon="hami.io/device-cordon",
        card_modes=frozenset({"", HAMI_CORE, MIG, MPS}),
        variables=(
            ("CUDA_DEVICE_MEMORY_LIMIT_{i}", "{memory}m"),
            ("CUDA_DEVICE_SM_LIMIT", "{cores}"),
            ("CUDA_DEVICE_MEMORY_SHARED_CACHE", "/usr/local/vgpu/{unique}.cache"),
            ("CUDA_OVERSUBSCRIBE", "{oversubscribed}"),
            ("LIBCUDA_LOG_LEVEL", "{log_level}"),
            ("GPU_CORE_UTILIZATION_POLICY", "{core_policy}"),
        ),
        words={"log_level": "1", "core_policy": ""},
        profiles=_profiles,
        has_rule=_has_rule,
        instances=Instances(MIG_ALLOCATIONS, _instances),
        hand_out=_hand_out,
        asking=Asking(
            selectors=selectors("nvidia.com", types="gputype")._replace(
                mode="nvidia.com/vgpu-mode", numa="nvidia.com/numa-bind"
            ),
            whole_has_all_cores=True,
            by_pairs=True,
            default_count=1,
        ),
    ),
    labels=Labelling(
        {"gpu": "on"},
        pci="10de",
        pci_class="0302",
        pci_classes=dict.fromkeys(VGA_CONTROLLERS, "0300"),
        make=_labels,
        stamps=frozenset({"nvidia.com/gfd.timestamp"}),
    ),
    config=ConfigSection(
        "nvidia", factor="memoryFactor", more=("nodeconfig",), options=_options, plugin=_plugin
    ),
    cutting=_cutting,
    exporter=_exporter,
    smi=_smi,
    dra=_dra,
    driver=_driver,
    oldest_driver=OLDEST,
)
