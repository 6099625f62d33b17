"""HAMi's device-config.yaml → a layer of option values, each with its place in that file.

It is the weakest layer: what the file doesn't say keeps its default, and our own file, variables
and flags say it better.
"""

from collections.abc import Iterator, Sequence

from hami_mock.settings.card_groups import card_groups
from hami_mock.settings.hami_config.device_config import Configured, DeviceConfig
from hami_mock.settings.layers import Entry, Layer, Merged
from hami_mock.vendors import VENDORS, Role, Vendor


def device_config_layer(config: DeviceConfig, stronger: Sequence[Layer], node_name: str) -> Layer:
    """Return what the file says for a node with the cards of the other layers."""
    # Chips have names of their own, so which cards there are must be known first.
    values = Merged(stronger, [])
    entries: dict[str, Entry] = {}
    for vendor in VENDORS:
        for option, (value, place) in config.options(vendor, node_name).items():
            entries[f"{vendor.prefix}-{option}"] = Entry(value, f"{config.source}: {place}")
        groups = card_groups(vendor, values) if vendor.has_chips else ()
        if found := config.of(vendor, groups[0].model if groups else None):
            entries |= dict(_names(config.source, vendor, found))
    return entries


def _names(path: str, vendor: Vendor, found: Configured) -> Iterator[tuple[str, Entry]]:
    names = found.hami.resources
    for offer in vendor.offers:
        if name := names.of(offer.role):
            yield offer.flag, Entry(name, f"{path}: {found.place}.{offer.config_key}")
        if offer.role is Role.MEMORY and names.memory_unit != offer.memory_unit:
            factor = names.memory_unit // offer.memory_unit
            where = f"{path}: {found.place}.{vendor.config.factor}"
            yield f"{vendor.prefix}-memory-factor", Entry(factor, where)
