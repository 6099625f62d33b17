"""How NVIDIA's cards are sliced, in HAMi's configuration: on all nodes, and on some."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hami_mock.hami.mig import MigGeometry, MigTemplate
from hami_mock.hami.register import HAMI_CORE
from hami_mock.kit.config_section import Section


@dataclass(frozen=True)
class MigRule:
    """What cards of some models may be cut into: geometries before HAMi 2.10, profiles since."""

    models: tuple[str, ...]
    geometries: tuple[MigGeometry, ...] = ()
    profiles: tuple[str, ...] = ()


@dataclass(frozen=True)
class NvidiaConfig:
    """How cards are sliced on a node.

    The defaults are for pods that ask for something else: MiB (0: all), percent, cards.
    `preconfigured_memory` is MiB of cards that don't say how much they have (0: none do).
    """

    split_count: int = 10
    memory_scaling: float = 1.0
    core_scaling: float = 1.0
    preconfigured_memory: int = 0
    mode: str = HAMI_CORE
    default_memory: int = 0
    default_cores: int = 0
    default_cards: int = 0
    log_level: str = ""
    disable_core_limit: bool = False
    mig_rules: tuple[MigRule, ...] = ()


@dataclass(frozen=True)
class NodeOverride:
    """What is different on one node: fields of NvidiaConfig, and cards that aren't registered."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    filtered_uuids: tuple[str, ...] = ()
    filtered_indices: tuple[int, ...] = ()


def read_nvidia(section: Section) -> NvidiaConfig:
    """Read the section `nvidia`."""
    default = NvidiaConfig()
    return NvidiaConfig(
        split_count=section.whole("deviceSplitCount", default.split_count),
        memory_scaling=section.scaling("deviceMemoryScaling", default.memory_scaling),
        core_scaling=section.scaling("deviceCoreScaling", default.core_scaling),
        preconfigured_memory=section.whole("preConfiguredDeviceMemory"),
        default_memory=section.whole("defaultMemory"),
        default_cores=section.whole("defaultCores"),
        default_cards=section.whole("defaultGPUNum"),
        log_level=section.text("libCudaLogLevel"),
        disable_core_limit=section.flag("disableCoreLimit"),
        mig_rules=(
            *map(_read_geometries, section.sections("knownMigGeometries")),
            *map(_read_profiles, section.sections("migProfileAllowlist")),
        ),
    )


def read_node(section: Section) -> NodeOverride:
    """Read an element of `nodeconfig`. The plugin does it with Go: keys count in any case."""
    entry = replace(section, values={str(k).lower(): v for k, v in section.values.items()})
    values = {
        "split_count": entry.whole("devicesplitcount"),
        "memory_scaling": entry.scaling("devicememoryscaling", 0),
        "core_scaling": entry.scaling("devicecorescaling", 0),
        "preconfigured_memory": entry.whole("preconfigureddevicememory"),
        "log_level": entry.text("libcudaloglevel"),
        "mode": entry.text("operatingmode"),
    }
    filtered = entry.section("filterdevices")
    return NodeOverride(
        name=entry.text("name", needed=True),
        # The plugin, too, takes 0 for "not said".
        values={name: value for name, value in values.items() if value},
        filtered_uuids=filtered.texts("uuid"),
        filtered_indices=filtered.wholes("index"),
    )


def _read_geometries(section: Section) -> MigRule:
    geometries = tuple(
        tuple(map(_read_template, geometry)) for geometry in section.tables("allowedGeometries")
    )
    return MigRule(section.texts("models"), geometries=geometries)


def _read_template(section: Section) -> MigTemplate:
    return MigTemplate(
        name=section.text("name", needed=True),
        memory=section.whole("memory"),
        cores=section.whole("core"),
        count=section.whole("count"),
    )


def _read_profiles(section: Section) -> MigRule:
    """HAMi doesn't start with a rule that it can't use, so that is a mistake here too."""
    rule = MigRule(section.texts("models"), profiles=section.texts("profiles"))
    for key in ("models", "profiles"):
        if section.values.get(key) in (None, []):
            section.refuse(key, section.values.get(key), "a list that isn't empty")
    for i, profile in enumerate(rule.profiles):
        slices, dot, _ = profile.partition(".")
        if not (dot and len(slices) > 1 and slices.endswith("g")):
            section.refuse(f"profiles[{i}]", profile, "like 1g.5gb")
    return rule
