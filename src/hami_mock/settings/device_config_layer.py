"""HAMi's device-config.yaml → a layer of option values, each with its place in that file.

It is the weakest layer: what the file doesn't say keeps its default, and our own file, variables
and flags say it better.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hami_mock.settings.config_file import read_text
from hami_mock.settings.hami_config import names as config_names
from hami_mock.settings.hami_config.device_config import DeviceConfig, parse
from hami_mock.settings.hami_config.names import NameKeys
from hami_mock.settings.hami_config.nvidia import NvidiaConfig
from hami_mock.settings.layers import Entry, Layer
from hami_mock.vendors import ASCEND, NVIDIA, VENDORS, Role, Vendor
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.hami_vendor import HamiVendor, ResourceNames

OPTION = "device-config-file"

# Which field of ResourceNames and NameKeys is about what.
_FIELDS = {
    Role.SLOTS: "count",
    Role.MEMORY: "memory",
    Role.CORES: "cores",
    Role.PERCENTAGE: "percentage",
}
# The options that NVIDIA's section and its nodeconfig set: field of NvidiaConfig, key of the file.
_NVIDIA_OPTIONS = {
    "split": ("split_count", "deviceSplitCount"),
    "memory-scaling": ("memory_scaling", "deviceMemoryScaling"),
    "core-scaling": ("core_scaling", "deviceCoreScaling"),
    "mode": ("mode", "operatingmode"),
}
_SECTIONS = {vendor.word: (name, keys) for name, vendor, keys in config_names.SECTIONS}


@dataclass(frozen=True)
class DeviceFile:
    """A file that has been read."""

    path: str
    config: DeviceConfig

    def chip(self, vendor: Vendor, model: Model) -> HamiVendor | None:
        """Return what the file says of the chip of an Ascend or Iluvatar model; None if nothing.

        By the name that the vendor's tool reports, as Ascend's plugin does, else by HAMi's word.
        """
        if vendor is ASCEND:
            chips = self.config.ascend.chips
            by_name = {chip.chip_name: chip.vendor for chip in reversed(chips)}
            by_word = {chip.vendor.word: chip.vendor for chip in reversed(chips)}
            return by_name.get(model.product) or by_word.get(model.chip)
        return next((found for found in self.config.iluvatars if found.word == model.chip), None)

    def layer(self, node_name: str, models: Mapping[str, Model]) -> Layer:
        """Return what the file says for a node with cards of these models (by vendor key)."""
        entries = dict(self._nvidia(node_name))
        for vendor in VENDORS:
            if not vendor.has_chips:
                section, keys = _SECTIONS[vendor.words[0]]
                names = self.config.resources.get(vendor.words[0])
                entries |= self._names(vendor, names, keys, section) if names else {}
            elif vendor.key in models and (chip := self.chip(vendor, models[vendor.key])):
                is_ascend = vendor is ASCEND
                keys = config_names.ASCEND if is_ascend else config_names.ILUVATAR
                place = f"{'vnpus' if is_ascend else 'iluvatars'}({chip.word})"
                entries |= self._names(vendor, chip.resources, keys, place)
        if self.config.ascend.hami_vnpu_core:
            entries["ascend-mode"] = Entry("hami-core", f"{self.path}: vnpus.hamiVnpuCore")
        return entries

    def _names(
        self, vendor: Vendor, names: ResourceNames, keys: NameKeys, place: str
    ) -> dict[str, Entry]:
        entries = {}
        for offer in vendor.offers:
            field = _FIELDS[offer.role]
            if name := getattr(names, field):
                where = f"{self.path}: {place}.{getattr(keys, field)}"
                entries[offer.flag] = Entry(name, where)
            if offer.role is Role.MEMORY and names.memory_unit != offer.memory_unit:
                factor = names.memory_unit // offer.memory_unit
                where = f"{self.path}: {place}.{keys.factor}"
                entries[f"{vendor.key}-memory-factor"] = Entry(factor, where)
        return entries

    def _nvidia(self, node_name: str) -> Iterator[tuple[str, Entry]]:
        here, general, default = (
            self.config.nvidia_on(node_name),
            self.config.nvidia,
            NvidiaConfig(),
        )
        for option, (field, key) in _NVIDIA_OPTIONS.items():
            value = getattr(here, field)
            if value != getattr(default, field) or value != getattr(general, field):
                is_general = value == getattr(general, field)
                section = "nvidia" if is_general else f"nodeconfig({node_name})"
                place = f"{self.path}: {section}.{key if is_general else key.lower()}"
                yield f"{NVIDIA.key}-{option}", Entry(value, place)


def read(path: str) -> DeviceFile:
    """Read a file. Raises UsageError with all that is wrong with it."""
    return DeviceFile(path, parse(read_text(OPTION, path), path))
