"""How NVIDIA's cards are sliced, in HAMi's device configuration: on all nodes, and on some."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from hami_mock.hami.config_section import Section
from hami_mock.vendors.scheduling import Allowed, AllowedProfiles, PluginConfig

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
    for name, node in _nodes(root):
        _check_node(node)
        values = _values(node, small)
        if name == node_name:
            said |= {
                option: (value, f"nodeconfig({name}).{small[option]}")
                for option, value in values.items()
                if value  # the plugin, too, takes 0 for "not said"
            }
    return said


def plugin(root: Section, node_name: str) -> PluginConfig:
    """Return what else the file says; `options` has checked it."""
    general = root.section("nvidia")
    words = {}
    if "libCudaLogLevel" in general:
        words["log_level"] = general.text("libCudaLogLevel")
    if "disableCoreLimit" in general:
        words["core_policy"] = "disable" if general.flag("disableCoreLimit") else ""
    left_out: frozenset[str | int] = frozenset()
    for name, node in _nodes(root):
        if name == node_name:
            words |= {"log_level": level} if (level := node.text("libcudaloglevel")) else {}
            left_out = _filtered(node) or left_out
    return PluginConfig(words, left_out, _allowed(general))


def _nodes(root: Section) -> Iterator[tuple[str, Section]]:
    """Yield what the file says of single nodes, with the name of each."""
    for entry in root.sections("nodeconfig"):
        node = replace(entry, values={str(k).lower(): v for k, v in entry.values.items()})
        yield node.text("name", needed=True), node


def _filtered(node: Section) -> frozenset[str | int]:
    devices = node.section("filterdevices")
    uuids, indices = devices.row("uuid"), devices.row("index")
    return frozenset((*map(uuids.text, uuids.values), *map(indices.whole, indices.values)))


def _allowed(section: Section) -> Allowed:
    if "migProfileAllowlist" not in section:
        return None
    return tuple(
        AllowedProfiles(_texts(rule, "models"), _texts(rule, "profiles"))
        for rule in section.sections("migProfileAllowlist")
    )


def _texts(section: Section, key: str) -> tuple[str, ...]:
    row = section.row(key)
    return tuple(map(row.text, row.values))


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
