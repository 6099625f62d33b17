"""Option values → one vendor's cards and how they are offered, with HAMi's names if it is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hami_mock.kit.values import not_allowed
from hami_mock.node.cards import CardGroup
from hami_mock.settings.card_groups import card_groups
from hami_mock.settings.layers import Merged
from hami_mock.settings.options import BY_NAME
from hami_mock.vendors import Offer, Role, Vendor

if TYPE_CHECKING:
    # What HAMi's scheduler knows takes long to load, and few agents need it.
    from hami_mock.node.hami_side import HamiSide
    from hami_mock.settings.device_config_layer import DeviceFile
    from hami_mock.vendors.hami_vendor import HamiVendor


@dataclass(frozen=True)
class Named:
    """A resource's name, and the option that gave it, as the user wrote it."""

    name: str
    source: str


@dataclass(frozen=True)
class VendorSettings:
    """One vendor's cards and how they are offered. `memory_factor` None means auto.

    `names` has a name for each resource that there could be, `offers` those that are registered if
    there are cards. `hami` is what HAMi's scheduler sees of them; None: nothing.
    """

    vendor: Vendor
    groups: tuple[CardGroup, ...]
    split: int
    memory_scaling: float
    core_scaling: float
    memory_factor: int | None
    names: Mapping[Role, Named]
    offers: tuple[Offer, ...]
    hami: "HamiSide | None" = None


@dataclass(frozen=True)
class Hami:
    """Whether the agent is the node side of HAMi, and HAMi's own configuration, if it was given."""

    is_on: bool
    file: "DeviceFile | None" = None

    def vendor(self, vendor: Vendor, groups: tuple[CardGroup, ...]) -> "HamiVendor":
        """Return what the scheduler knows of a vendor's cards; the first decides on the chip."""
        if not (vendor.has_chips and groups):
            return vendor.chips[vendor.words[0]]
        model = groups[0].model
        of_file = self.file.config.of(vendor, model) if self.file else None
        return of_file.hami if of_file else vendor.chips[model.chip]


def vendor_settings(
    vendor: Vendor, values: Merged, hami: Hami, problems: list[str]
) -> VendorSettings:
    """Return a vendor's settings. What is wrong with its cards is added to the problems."""

    def value(key: str, otherwise: Any) -> Any:
        # A vendor has no option for what none of its resources counts.
        option = f"{vendor.prefix}-{key}"
        return values[option] if option in BY_NAME else otherwise

    groups = card_groups(vendor, values, problems)
    offers = tuple(
        offer
        for offer in vendor.offers
        if hami.is_on or not offer.hami or values.rank(offer.flag) >= 0
    )
    has_slots = any(offer.role is Role.SLOTS for offer in offers)
    split = value("split", 1)
    if split is None:
        split = (hami.vendor(vendor, groups).slots or 1) if has_slots else 1
    factor = value("memory-factor", 1)
    scalings = (value("memory-scaling", 1.0), value("core-scaling", 1.0))
    side = None
    if hami.is_on and groups:
        from hami_mock.node.hami_side import HamiSide

        _check_chips(vendor, values, groups, problems)
        if factor == "auto":
            # Its scheduler reckons with a factor of its own, and pods ask in units of that.
            allowed = "a number with --hami on, the same as memoryFactor in HAMi's configuration"
            problems.append(
                not_allowed(values.place(f"{vendor.prefix}-memory-factor"), factor, allowed)
            )
        side = HamiSide(hami.vendor(vendor, groups), split, *scalings, value("mode", ""))
    chip = groups[0].model.chip if groups else vendor.words[0]
    return VendorSettings(
        vendor=vendor,
        groups=groups,
        split=split,
        memory_scaling=scalings[0],
        core_scaling=scalings[1],
        memory_factor=None if factor == "auto" else factor,
        names={offer.role: _named(offer, values, chip, hami.is_on) for offer in vendor.offers},
        offers=offers,
        hami=side,
    )


def _named(offer: Offer, values: Merged, chip: str, is_hami: bool) -> Named:
    given = values[offer.flag] if values.rank(offer.flag) >= 0 else None
    default = offer.name_in_hami(chip) if is_hami or offer.hami else offer.name
    return Named(given or default, values.place(offer.flag))


def _check_chips(
    vendor: Vendor, values: Merged, groups: tuple[CardGroup, ...], problems: list[str]
) -> None:
    chips = dict.fromkeys(group.model.chip for group in groups)
    if len(chips) > 1:
        problems.append(
            f"{values.place(f'{vendor.prefix}-groups')}: {' and '.join(chips)} can't share a "
            "node with --hami on: HAMi names resources after the chip"
        )
