"""What the resources of a vendor are called where HAMi's scheduler reads a node. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.settings.vendor_settings import Named, VendorSettings
from hami_mock.vendors.hami_vendor import HamiVendor, ResourceNames
from hami_mock.vendors.vendor import Offer, Role


@dataclass(frozen=True)
class HamiNames:
    """The names of one vendor. One with chips has other names for each.

    The settings have names for one chip, and the node may have another.
    """

    settings: VendorSettings
    config: DeviceConfig | None = None

    @property
    def chips(self) -> Iterator[HamiVendor]:
        """What the scheduler calls the vendor's cards: by a word, or by one for each chip."""
        vendor = self.settings.vendor
        known = dict(vendor.chips)
        if self.config is not None and vendor.has_chips:
            own = self.config.vendors.values()
            known |= {hami.word: hami for hami in own if hami.vendor is vendor}
        yield from known.values()

    def named(self, offer: Offer, hami: HamiVendor) -> Named:
        """Return a name: the device configuration's or the user's, else HAMi's own."""
        chosen, vendor = self.settings.names[offer.role], self.settings.vendor
        if not vendor.has_chips:
            return chosen
        names = self._configured(hami)
        if names is not None:
            return Named(names.of(offer.role), "--device-config-file")
        if chosen.name in {offer.name, *map(offer.name_in_hami, vendor.words)}:
            return Named(offer.name_in_hami(hami.word), hami.node.register)
        return chosen

    def count(self, hami: HamiVendor) -> str:
        """Return the name of the count resource, which the real plugin registers."""
        offers = self.settings.vendor.offers
        slots = next((offer for offer in offers if offer.role is Role.SLOTS), None)
        return self.named(slots, hami).name if slots else hami.resources.count

    def memory_unit(self, offer: Offer, hami: HamiVendor) -> int | None:
        """Return the MiB that one device of a memory resource stands for; None: auto decides."""
        factor = self.settings.memory_factor
        names = self._configured(hami)
        if names is not None and factor == 1 and self.settings.vendor.has_chips:
            return names.memory_unit
        return factor * offer.memory_unit if factor is not None else None

    def _configured(self, hami: HamiVendor) -> ResourceNames | None:
        found = self.config.vendors.get(hami.word) if self.config else None
        return found.resources if found else None
