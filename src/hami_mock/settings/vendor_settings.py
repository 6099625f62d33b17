"""Option values → one vendor's cards and how they are offered, with HAMi's names if it is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hami_mock.hami.kinds import MIG
from hami_mock.node.cards import CardGroup
from hami_mock.settings.card_groups import card_groups
from hami_mock.settings.layers import Merged
from hami_mock.settings.options import BY_NAME
from hami_mock.vendors import Offer, Role, Vendor
from hami_mock.vendors.scheduling import UNCONFIGURED, PluginConfig

if TYPE_CHECKING:
    # What HAMi's scheduler knows takes long to load, and few agents need it.
    from hami_mock.node.hami_side import HamiSide
    from hami_mock.settings.hami_config.device_config import DeviceConfig
    from hami_mock.vendors.hami_vendor import HamiVendor


@dataclass(frozen=True)
class Named:
    """A resource's name, and the option that gave it, as the user wrote it.

    A resource without a name is left out: nobody registers it.
    """

    name: str
    source: str


@dataclass(frozen=True)
class VendorSettings:
    """One vendor's cards and how they are offered. `memory_factor` None means auto.

    `names` has a name for each resource that there could be, `offers` those that are registered if
    there are cards. `mode` is how cards are sliced, "" where there is one way; `hami` is what
    HAMi's scheduler sees of them; None: nothing. `plugin` is what HAMi's configuration has for its
    plugin on this node.
    """

    vendor: Vendor
    groups: tuple[CardGroup, ...]
    split: int
    memory_scaling: float
    core_scaling: float
    memory_factor: int | None
    names: Mapping[Role, Named]
    offers: tuple[Offer, ...]
    mode: str = ""
    hami: "HamiSide | None" = None
    plugin: PluginConfig = UNCONFIGURED


def vendor_settings(
    vendor: Vendor, values: Merged, config: "DeviceConfig | None", node_name: str
) -> VendorSettings:
    """Return a vendor's settings. What is wrong with its cards is added to the values' problems."""

    def value(key: str, otherwise: Any) -> Any:
        # A vendor has no option for what none of its resources counts.
        option = f"{vendor.prefix}-{key}"
        return values[option] if option in BY_NAME else otherwise

    groups = card_groups(vendor, values)
    is_hami = values["hami"]
    offers = tuple(
        offer
        for offer in vendor.offers
        if is_hami or not offer.hami or values.rank(offer.flag) >= 0
        if values.given.get(offer.flag) != ""
    )
    has_slots = any(offer.role is Role.SLOTS for offer in offers)
    split = value("split", 1)
    if split is None:
        split = (_hami_vendor(vendor, groups, config).slots or 1) if has_slots else 1
    factor = value("memory-factor", 1)
    mode = value("mode", "")
    # HAMi's plugin scales nothing of cards that are cut into instances.
    memory_scaling = 1.0 if mode == MIG else value("memory-scaling", 1.0)
    core_scaling = 1.0 if mode == MIG else value("core-scaling", 1.0)
    plugin = config.plugin(vendor, node_name) if config else UNCONFIGURED
    side = None
    if is_hami and groups:
        from hami_mock.node.hami_side import HamiSide

        chips = dict.fromkeys(group.model.chip for group in groups)
        if len(chips) > 1:
            values.problems.append(
                f"{values.place(f'{vendor.prefix}-groups')}: {' and '.join(chips)} can't share a "
                "node with --hami on: HAMi names resources after the chip"
            )
        if factor == "auto" or (factor != 1 and not vendor.config.factor):
            # Its scheduler reckons with a factor of its own, and pods ask in units of that.
            values.refuse(f"{vendor.prefix}-memory-factor", factor, _factors_with_hami(vendor))
        if vendor.hami.node.encoding is None:
            allowed = "a name with --hami on: HAMi's scheduler counts the cards by this resource"
            for offer in vendor.offers:
                if offer not in offers:
                    values.refuse(offer.flag, "", allowed)
        known = _hami_vendor(vendor, groups, config)
        side = HamiSide(
            known, split, memory_scaling, core_scaling, mode, values["hami-topology-score"], plugin
        )
    chip = groups[0].model.chip if groups else vendor.words[0]
    return VendorSettings(
        vendor=vendor,
        groups=groups,
        split=split,
        memory_scaling=memory_scaling,
        core_scaling=core_scaling,
        memory_factor=None if factor == "auto" else factor,
        names={offer.role: _named(offer, values, chip, is_hami) for offer in vendor.offers},
        offers=offers,
        mode=mode,
        hami=side,
        plugin=plugin,
    )


def _factors_with_hami(vendor: Vendor) -> str:
    if vendor.config.factor:
        return "a number with --hami on, the same as memoryFactor in HAMi's configuration"
    return "1 with --hami on: HAMi's configuration has no memoryFactor for these cards"


def _named(offer: Offer, values: Merged, chip: str, is_hami: bool) -> Named:
    default = offer.name_in_hami(chip) if is_hami or offer.hami else offer.name
    return Named(values.given.get(offer.flag, default), values.place(offer.flag))


def _hami_vendor(
    vendor: Vendor, groups: tuple[CardGroup, ...], config: "DeviceConfig | None"
) -> "HamiVendor":
    """Return what the scheduler knows of a vendor's cards; the first decides on the chip."""
    if not (vendor.has_chips and groups):
        return vendor.chips[vendor.words[0]]
    model = groups[0].model
    of_file = config.of(vendor, model) if config else None
    return of_file.hami if of_file else vendor.chips[model.chip]
