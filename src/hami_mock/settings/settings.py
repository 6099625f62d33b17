"""Flags, environment and file → frozen Settings, or every mistake in them at once."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from hami_mock.errors import UsageError
from hami_mock.kit.files import read_text
from hami_mock.kit.text import LONGEST_LINE, cut
from hami_mock.kubelet.limits import Version
from hami_mock.node.ways import Units
from hami_mock.settings.card_groups import card_groups
from hami_mock.settings.config_file import ConfigFile, Section, parse, read
from hami_mock.settings.layers import (
    Entry,
    Layer,
    Merged,
    environment_layer,
    file_layer,
    strongest,
    text_layer,
)
from hami_mock.settings.options import GENERAL, TOPOLOGY_SCORE
from hami_mock.settings.vendor_settings import Named, VendorSettings, vendor_settings
from hami_mock.vendors import VENDORS
from hami_mock.vendors.dra import Profile, driver_of
from hami_mock.vendors.labelling import LabelSet

if TYPE_CHECKING:
    from hami_mock.settings.hami_config.device_config import DeviceConfig
    from hami_mock.settings.pools import Pool

_DeviceConfigs = Callable[[str], "DeviceConfig | None"]

# Linux takes 107 bytes for the path of a unix socket; the longest of our names needs 48 of them.
LONGEST_SOCKET_DIR = 107 - len("/") - 48

NO_FLAGS: Mapping[str, str] = {}

__all__ = ["Named", "Settings", "VendorSettings", "load"]


@dataclass(frozen=True)
class Settings:
    """All that the user decided: the general options by name, and what the others come to."""

    node_name: str
    socket_dir: str
    device_plugins: bool
    units: Units
    http_listen: str
    log_level: str
    log_format: str
    config: str | None
    control_socket: str
    pod_resources_socket: str
    kubernetes_events: bool
    pods: bool
    labels: tuple[LabelSet, ...]
    labels_remove: bool
    hami: bool
    hami_keep_annotations: bool
    hami_topology_score: bool
    source: str
    device_config_file: str | None
    scenario: str | None
    seed: int | None
    ignored_xids: frozenset[int]
    load: str
    load_trace: tuple[str, ...] | None
    time_factor: int
    driver: bool
    driver_root: str
    driver_version: str
    dra: tuple[Profile, ...]
    dra_plugins_dir: str
    dra_registry_dir: str
    cdi_dir: str
    dcgm_listen: str
    dcgm_sharing: bool
    dcgm_hostname_label: str
    dcgm_extras: bool
    hami_monitor_listen: str
    hami_monitor_legacy: bool
    vendor_metrics_listen: str
    kubelet_version: Version | None
    vendors: tuple[VendorSettings, ...]
    given: Mapping[str, Any]
    """The values of all options that were given somewhere."""
    warnings: tuple[str, ...] = ()
    section: Section | None = None
    """The section of the file that is for this node."""

    @property
    def is_companion(self) -> bool:
        """Whether the cards are those of a real plugin of HAMi's."""
        return self.source == "hami"

    @property
    def may_use_status(self) -> bool:
        """Whether units may stand in the Node's status."""
        return self.device_plugins and self.units is not Units.PLUGIN

    @property
    def reads_pods(self) -> bool:
        return self.pods or self.hami

    @property
    def has_exporters(self) -> bool:
        return any((self.dcgm_listen, self.hami_monitor_listen, self.vendor_metrics_listen))

    @property
    def cluster_flags(self) -> tuple[str, ...]:
        """What was chosen that can't be without the API server."""
        flags = {
            "--hami on": self.hami,
            "--source hami": self.is_companion,
            "--units status": self.device_plugins and self.units is Units.STATUS,
            "--dra": bool(self.dra),
            "--labels": bool(self.labels),
            "--pods on": self.pods,
            "--kubernetes-events on": self.kubernetes_events,
        }
        return tuple(flag for flag, is_chosen in flags.items() if is_chosen)

    @property
    def needs_cluster(self) -> bool:
        return bool(self.cluster_flags)


def load(flags: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> Settings:
    """Make the settings from flags (name → value), os.environ and the file that these name.

    `overrides` are stronger than all: what was set while the agent ran.

    Raises UsageError with one line for each mistake, in whichever source it is.
    """
    return _load(flags, overrides or {}, for_all=False)[0]


def load_all(flags: Mapping[str, str]) -> tuple[Settings, ...]:
    """Return the settings of every section of the file, and those of all other nodes.

    A section for one node by name has that name; the others have that of this node.
    """
    return tuple(_load(flags, {}, for_all=True)[1])


def load_pools(
    path: str, flags: Mapping[str, str] = NO_FLAGS, text: str | None = None
) -> "tuple[Pool, ...]":
    """Return the pools of a file, with the settings of their nodes.

    Without a text, the file is read. Flags and variables say which cards this node has, and nothing
    of those. Raises UsageError with a line for each mistake, also if there are no pools.
    """
    # Here, because an agent has no use for them.
    from hami_mock.settings.pools import Pool

    problems: list[str] = []
    strong = [environment_layer(os.environ, problems, []), text_layer(flags, "--", problems)]
    file = parse(path, read_text("can't read the fleet", path) if text is None else text)
    if not file.pools:
        problems.append(f"{path}: it has no pools: give a list of them, each with name and nodes")
    weak = file_layer(path, file.entries, problems)
    device_configs: _DeviceConfigs = cache(partial(_device_config, problems))
    found = []
    for pool in file.pools:
        name = pool.kept.match or f"{pool.kept.name}-0"
        section = file.section_of(name)
        if pool.kept.match and section is None:
            problems.append(
                f"{path}: {pool.place}.match: no section of `nodes` matches {name!r}: name a node "
                "that one does, or leave it out"
            )
        special = [file_layer(path, section.entries, problems, is_section=True)] if section else []
        own = file_layer(path, pool.entries, problems, is_section=True)
        layers = [weak, *special, own, *map(_without_cards, strong)]
        settings = _settings(layers, name, device_configs, problems)
        if settings.is_companion:
            problems.append(
                f"{path}: {pool.place}: source: the nodes of a fleet have no real plugin"
            )
        found.append(Pool(**vars(pool.kept), settings=replace(settings, section=section)))
    if problems:
        raise UsageError(cut(line, LONGEST_LINE) for line in dict.fromkeys(problems))
    return tuple(found)


def _load(
    flags: Mapping[str, str], overrides: Mapping[str, str], *, for_all: bool
) -> tuple[Settings, list[Settings]]:
    """Return the settings of this node, and those of all sections in the order of the file."""
    problems: list[str] = []
    warnings: list[str] = []
    strong = [
        environment_layer(os.environ, problems, warnings),
        text_layer(flags, "--", problems),
        text_layer(overrides, "", problems),
    ]
    path = str(strongest("config", strong) or "")
    file = ConfigFile()
    try:
        file = read(path) if path else file
    except UsageError as error:
        problems += error.problems
    weak = [_of_pod(os.environ), file_layer(path, file.entries, problems)]
    node_name = str(strongest("node-name", [*weak, *strong]) or socket.gethostname())
    chosen = file.section_of(node_name)
    # A mistake in the section of another node is one too: or this node would start where the next
    # one won't.
    sections: list[Section | None] = [*file.sections]
    if chosen is None or (for_all and not any("*" in s.globs for s in file.sections)):
        sections.append(None)
    # Each is read once, and anew when the settings are loaded again.
    device_configs: _DeviceConfigs = cache(partial(_device_config, problems))
    found = []
    for section in sections:
        special = [file_layer(path, section.entries, problems, is_section=True)] if section else []
        stronger = strong if section is chosen or for_all else map(_without_cards, strong)
        layers = [*weak, *special, *stronger]
        name = node_name if section is chosen else _name_in(section) or node_name
        settings = _settings(layers, name, device_configs, problems)
        found.append(replace(settings, warnings=tuple(warnings), section=section))
    if problems:
        raise UsageError(cut(line, LONGEST_LINE) for line in dict.fromkeys(problems))
    return found[sections.index(chosen)], found


def _of_pod(environ: Mapping[str, str]) -> Layer:
    """Return what manifests set: ours from the pod's own node, HAMi's chart for its plugin."""
    name = environ.get("NODE_NAME")
    named = {"node-name": Entry(name, "NODE_NAME")} if name else {}
    if environ.get(TOPOLOGY_SCORE) == "true":
        named["hami-topology-score"] = Entry("on", TOPOLOGY_SCORE)
    return named


def _without_cards(layer: Layer) -> Layer:
    """Leave out which cards this node has: that needn't go with another node's section."""
    ends = ("-cards", "-model", "-memory")
    return {name: entry for name, entry in layer.items() if not name.endswith(ends)}


def _name_in(section: Section | None) -> str:
    """Return the name of the one node that a section is for; empty if there may be several."""
    if section is None or len(section.globs) > 1 or set("*?[") & set(section.globs[0]):
        return ""
    return section.globs[0]


def _settings(
    layers: Sequence[Layer], node_name: str, device_configs: _DeviceConfigs, problems: list[str]
) -> Settings:
    path = strongest("device-config-file", layers)
    # What is no text is said to be wrong with the other values.
    config = device_configs(path) if path and isinstance(path, str) else None
    if config is not None:
        layers = [_device_config_layer(config, layers, node_name), *layers]
    values = Merged(layers, problems)
    vendors = tuple(vendor_settings(vendor, values, config, node_name) for vendor in VENDORS)
    _check_names(vendors, problems)
    if len(values["socket-dir"].encode(errors="surrogatepass")) > LONGEST_SOCKET_DIR:
        allowed = (
            f"at most {LONGEST_SOCKET_DIR} bytes long, because paths of unix sockets are limited"
        )
        values.refuse("socket-dir", values["socket-dir"], allowed)
    if values["hami"] and values["source"] == "hami":
        problems.append(
            f"{values.place('hami')}: an agent that acts as HAMi's node side can't accompany "
            f"a real plugin too: remove {values.place('source')} or this"
        )
    if not values["device-plugins"] and (values["hami"] or values["source"] == "hami"):
        other = "hami" if values["hami"] else "source"
        problems.append(
            f"{values.place('device-plugins')}: off leaves the resources to a real plugin, but "
            f"{values.place(other)} needs hami-mock's own plugins: remove one of the two"
        )
    if values["dra"]:
        _check_dra(vendors, values, problems)
    own = {option.field: values[option.name] for option in GENERAL}
    own |= {"node_name": node_name, "vendors": vendors}
    return Settings(**own, given=values.given)


def _check_dra(vendors: tuple[VendorSettings, ...], values: Merged, problems: list[str]) -> None:
    if values["source"] == "hami":
        problems.append(
            f"{values.place('dra')}: the cards of a real plugin can't be published through DRA "
            f"too: remove {values.place('source')} or this"
        )
    for each in vendors:
        own = [profile for profile in values["dra"] if driver_of(each.vendor, profile)]
        if each.groups and len(own) > 1:
            problems.append(
                f"{values.place('dra')}: {' and '.join(own)} would both offer the cards of "
                f"{each.vendor.title}, and neither knows what the other gives out: choose one"
            )


def _device_config(problems: list[str], path: str) -> "DeviceConfig | None":
    # Here, because few agents have such a file, and what reads it takes long to load.
    from hami_mock.settings.hami_config import device_config

    try:
        return device_config.read(path)
    except UsageError as error:
        problems += error.problems
        return None


def _device_config_layer(
    config: "DeviceConfig", stronger: Sequence[Layer], node_name: str
) -> Layer:
    """Return what HAMi's file says for a node with the cards of the other layers.

    It is the weakest layer: what the file doesn't say keeps its default, and our own file,
    variables and flags say it better.
    """
    # Chips have names of their own, so which cards there are must be known first.
    values = Merged(stronger, [])
    entries: dict[str, Entry] = {}
    for vendor in VENDORS:
        for option, (value, place) in config.options(vendor, node_name).items():
            entries[f"{vendor.prefix}-{option}"] = Entry(value, f"{config.source}: {place}")
        groups = card_groups(vendor, values) if vendor.has_chips else ()
        for option, value, place in config.resources(vendor, groups[0].model if groups else None):
            entries[option] = Entry(value, f"{config.source}: {place}")
    return entries


def _check_names(vendors: tuple[VendorSettings, ...], problems: list[str]) -> None:
    taken: dict[str, str] = {}
    for vendor in vendors:
        for offer in vendor.offers if vendor.groups else ():
            named = vendor.names[offer.role]
            if named.name in taken:
                problems.append(
                    f"{named.source}: the resource name {named.name!r} is taken by "
                    f"{taken[named.name]}: each resource needs its own name"
                )
            taken.setdefault(named.name, named.source)
