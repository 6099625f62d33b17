"""HAMi's device-config.yaml → a layer of option values, each with its place in that file.

It is the weakest layer: what the file doesn't say keeps its default, and our own file, variables
and flags say it better.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hami_mock.settings.config_file import read_text
from hami_mock.settings.hami_config.device_config import Configured, DeviceConfig, parse
from hami_mock.settings.layers import Entry, Layer
from hami_mock.vendors import VENDORS, Role, Vendor
from hami_mock.vendors.catalog import Model

OPTION = "device-config-file"


@dataclass(frozen=True)
class DeviceFile:
    """A file that has been read."""

    path: str
    config: DeviceConfig

    def layer(self, node_name: str, models: Mapping[str, Model]) -> Layer:
        """Return what the file says for a node with cards of these models (by vendor's name)."""
        entries: dict[str, Entry] = {}
        for vendor in VENDORS:
            for option, (value, place) in self.config.options(vendor, node_name).items():
                entries[f"{vendor.prefix}-{option}"] = Entry(value, f"{self.path}: {place}")
            if found := self.config.of(vendor, models.get(vendor.name)):
                entries |= dict(self._names(vendor, found))
        return entries

    def _names(self, vendor: Vendor, found: Configured) -> Iterator[tuple[str, Entry]]:
        names = found.hami.resources
        for offer in vendor.offers:
            if name := names.of(offer.role):
                yield offer.flag, Entry(name, f"{self.path}: {found.place}.{offer.config_key}")
            if offer.role is Role.MEMORY and names.memory_unit != offer.memory_unit:
                factor = names.memory_unit // offer.memory_unit
                where = f"{self.path}: {found.place}.{vendor.config.factor}"
                yield f"{vendor.prefix}-memory-factor", Entry(factor, where)


def read(path: str) -> DeviceFile:
    """Read a file. Raises UsageError with all that is wrong with it."""
    return DeviceFile(path, parse(read_text(OPTION, path), path))
