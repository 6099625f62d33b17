"""How NVIDIA's cards are sliced, in HAMi's device configuration: on all nodes, and on some."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from hami_mock.hami.config_section import Section

# Our options, and the keys that say them; in `nodeconfig` keys count in any case.
_KEYS = {
    "split": "deviceSplitCount",
    "memory-scaling": "deviceMemoryScaling",
    "core-scaling": "deviceCoreScaling",
    "mode": "operatingmode",
}


def options(root: Section, node_name: str) -> Mapping[str, tuple[object, str]]:
    """Return what the file says of our options on a node; of several entries the last counts.

    All of what HAMi reads is checked, also what we have no use for.
    """
    general = root.section("nvidia")
    _check(general)
    said = {
        option: (value, f"nvidia.{_KEYS[option]}")
        for option, value in _values(general, _KEYS).items()
        if option != "mode"
    }
    small = {option: key.lower() for option, key in _KEYS.items()}
    for entry in root.sections("nodeconfig"):
        node = replace(entry, values={str(k).lower(): v for k, v in entry.values.items()})
        name = node.text("name", needed=True)
        _check_node(node)
        values = _values(node, small)
        if name == node_name:
            said |= {
                option: (value, f"nodeconfig({name}).{small[option]}")
                for option, value in values.items()
                if value  # the plugin, too, takes 0 for "not said"
            }
    return said


def _values(section: Section, keys: Mapping[str, str]) -> dict[str, object]:
    readers: dict[str, Callable[[str], object]] = {
        "split": section.whole,
        "memory-scaling": section.scaling,
        "core-scaling": section.scaling,
        "mode": section.text,
    }
    return {option: readers[option](key) for option, key in keys.items() if key in section}


def _check(section: Section) -> None:
    for key in ("preConfiguredDeviceMemory", "defaultMemory", "defaultCores", "defaultGPUNum"):
        section.whole(key)
    section.text("libCudaLogLevel")
    section.flag("disableCoreLimit")
    for rule in section.sections("knownMigGeometries"):
        rule.check_texts("models")
        geometries = rule.row("allowedGeometries")
        for geometry in geometries.values:
            for template in geometries.sections(geometry):
                template.text("name", needed=True)
                for key in ("memory", "core", "count"):
                    template.whole(key)
    for rule in section.sections("migProfileAllowlist"):
        _check_profiles(rule)


def _check_node(section: Section) -> None:
    section.whole("preconfigureddevicememory")
    section.text("libcudaloglevel")
    filtered = section.section("filterdevices")
    filtered.check_texts("uuid")
    indices = filtered.row("index")
    for place in indices.values:
        indices.whole(place)


def _check_profiles(section: Section) -> None:
    """HAMi doesn't start with a rule that it can't use, so that is a mistake here too."""
    section.check_texts("models")
    for key in ("models", "profiles"):
        if section.values.get(key) in (None, []):
            section.refuse(key, "a list that isn't empty")
    row = section.row("profiles")
    for place in row.values:
        profile = row.text(place, needed=True)
        slices, dot, _ = profile.partition(".")
        if profile and not (dot and len(slices) > 1 and slices.endswith("g")):
            row.refuse(place, "like 1g.5gb")
