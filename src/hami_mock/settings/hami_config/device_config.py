"""HAMi's configuration: device-config.yaml of the scheduler, and config.json of NVIDIA's plugin.

The first names resources and says how cards are sliced; the second, `nodeconfig`, says what is
different on single nodes. One function reads both, for in a file of one's own they can stand
together. HAMi gets new keys with each release, so unknown ones are passed over.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.kit.config_section import Section
from hami_mock.settings.hami_config import names as config_names
from hami_mock.settings.hami_config.ascend import AscendConfig, read_vnpus
from hami_mock.settings.hami_config.nvidia import NodeOverride, NvidiaConfig, read_node, read_nvidia
from hami_mock.vendors import hami_vendors
from hami_mock.vendors.hami_vendor import HamiVendor, ResourceNames


@dataclass(frozen=True)
class DeviceConfig:
    """What a file says. `resources` has the names by the vendor's word, where the file has any."""

    resources: Mapping[str, ResourceNames] = field(default_factory=dict, hash=False)
    nvidia: NvidiaConfig = field(default_factory=NvidiaConfig)
    iluvatars: tuple[HamiVendor, ...] = ()
    ascend: AscendConfig = field(default_factory=AscendConfig)
    nodes: tuple[NodeOverride, ...] = ()

    def nvidia_on(self, node_name: str) -> NvidiaConfig:
        """Return how NVIDIA's cards are sliced on a node; of several entries the last counts."""
        config = self.nvidia
        for node in self.nodes:
            if node.name == node_name:
                config = replace(config, **node.values)
        return config


def parse(text: str, source: str) -> DeviceConfig:
    """Read a file's text. Raises UsageError with all that is wrong, each with its place."""
    root = Section(_load(text, source), "", [])
    iluvatars = tuple(map(_read_iluvatar, root.sections("iluvatars")))
    ascend = read_vnpus(root)
    config = DeviceConfig(
        resources=config_names.read_names(root)
        | {vendor.word: vendor.resources for vendor in iluvatars}
        | {chip.vendor.word: chip.vendor.resources for chip in ascend.chips},
        nvidia=read_nvidia(root.section("nvidia")),
        iluvatars=iluvatars,
        ascend=ascend,
        nodes=tuple(map(read_node, root.sections("nodeconfig"))),
    )
    # Two vendors in one section, or two readers of it, find the same mistake.
    problems = list(dict.fromkeys(root.problems))
    if not problems and config == DeviceConfig():
        problems = ["the file says nothing of any device, and HAMi wouldn't start with it"]
    if problems:
        raise UsageError(f"{source}: {problem}" for problem in problems)
    return config


def _read_iluvatar(section: Section) -> HamiVendor:
    names = config_names.ILUVATAR.read(section, hami_vendors.ILUVATAR[0].resources)
    return hami_vendors.iluvatar(section.text("commonWord", needed=True), names)


def _load(text: str, source: str) -> dict[Any, Any]:
    try:
        if text.lstrip().startswith("{"):
            document = json.loads(text)  # YAML takes 1e3 for a text, and not all tabs
        else:
            # Here, because most agents have no such file, and the parser takes long to load.
            from hami_mock.kit import strict_yaml

            document = strict_yaml.load(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source}: not valid YAML: {error}") from error
    if not isinstance(document, dict | None):
        raise UsageError(f"{source}: the file must be a mapping, not {document!r}")
    return document or {}
