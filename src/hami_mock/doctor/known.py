"""The vendors and resource names that HAMi knows: its defaults, or a device configuration's."""

from collections.abc import Iterable, Iterator

from hami_mock.kit.similar import similar
from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.vendors import VENDORS
from hami_mock.vendors.hami_vendor import HamiVendor, ResourceNames

OF_OTHER_PLUGINS = frozenset(vendor.counted.source for vendor in VENDORS if vendor.counted)
"""What the plugins of some vendors register that HAMi doesn't look at, but its mock does."""

LOCKS = tuple(dict.fromkeys(vendor.hami.lock for vendor in VENDORS if vendor.hami.lock))
"""The locks that a node can have."""

# Below it, other resources of the same vendor look alike: nvidia.com/gpu and nvidia.com/gpu.shared.
_SIMILARITY = 0.85


def vendors_of(config: DeviceConfig | None) -> tuple[HamiVendor, ...]:
    """Return the vendors that a scheduler with this configuration knows; None: HAMi's defaults."""
    if config is not None:
        return tuple(config.vendors.values())
    return tuple(chip for vendor in VENDORS for chip in vendor.chips.values())


def names_of(names: ResourceNames) -> list[str]:
    """Return the names of a vendor's resources."""
    every = (names.count, names.memory, names.cores, names.percentage)
    return [name for name in every if name]


def default_names() -> frozenset[str]:
    """Return all names that HAMi and hami-mock use where nobody renames anything."""
    ours = (offer.name for vendor in VENDORS for offer in vendor.offers)
    return frozenset(ours) | known_names(vendors_of(None))


def known_names(vendors: Iterable[HamiVendor]) -> frozenset[str]:
    """Return all names of these vendors' resources."""
    return frozenset(_names(vendors))


def meant(name: str, known: Iterable[str]) -> str:
    """Return the known name that a wrong one was probably meant to be, or nothing."""
    return next(iter(similar(name, sorted(known), cutoff=_SIMILARITY)), "")


def _names(vendors: Iterable[HamiVendor]) -> Iterator[str]:
    for vendor in vendors:
        yield from names_of(vendor.resources)
