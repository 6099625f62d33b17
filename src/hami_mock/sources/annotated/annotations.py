"""Cards from the annotations of HAMi's plugins, and what those plugins don't register. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hami_mock.hami.errors import Malformed
from hami_mock.hami.kinds import HAMI_CORE
from hami_mock.hami.register import RegisteredDevice, decode
from hami_mock.node.cards import Card
from hami_mock.settings.hami_config.device_config import DeviceConfig
from hami_mock.settings.vendor_settings import Named, VendorSettings
from hami_mock.sources.annotated.found import Found
from hami_mock.sources.annotated.node_object import NodeObject
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.hami_vendor import HamiVendor, ResourceNames
from hami_mock.vendors.vendor import Offer, Role, Vendor

_Devices = tuple[RegisteredDevice, ...]


@dataclass(frozen=True)
class AnnotatedVendor:
    """A vendor on a node, where the annotations of HAMi's plugins say which cards it has.

    One with chips has other names for each. The settings have names for one chip, and the node may
    have another.
    """

    node: NodeObject
    settings: VendorSettings
    config: DeviceConfig | None

    @property
    def vendor(self) -> Vendor:
        return self.settings.vendor

    @property
    def _known_chips(self) -> Collection[HamiVendor]:
        """What the scheduler calls the vendor's cards: by a word, or by one for each chip."""
        known = dict(self.vendor.chips)
        if self.config is not None and self.vendor.has_chips:
            own = self.config.vendors.values()
            known |= {hami.word: hami for hami in own if hami.vendor is self.vendor}
        return known.values()

    @property
    def chips(self) -> list[HamiVendor]:
        """The chips that there is an annotation for."""
        return [
            hami
            for hami in self._known_chips
            if hami.node.encoding and hami.node.register in self.node.annotations
        ]

    @property
    def relevant(self) -> Iterator[object]:
        """All of the node that decides on the vendor's cards."""
        yield self.node.annotations.get(self.vendor.hami.soft_slicing)
        for hami in self._known_chips:
            yield self.node.annotations.get(hami.node.register)
            yield self.node.capacity.get(self._count(hami))

    def read(self, found: Found) -> None:
        """Add the vendor's cards and shares, or what is wrong, to what was found."""
        if not self.chips:
            self._miss(found)
        known = [
            (hami, devices)
            for hami in self.chips
            if self._is_served(hami, found) and (devices := self._devices(hami, found))
        ]
        for hami, devices in known[:1]:
            self._add(hami, devices, found)
        for hami, _ in known[1:]:
            # They would share the IDs of devices with the first.
            found.reasons.append(
                f"{hami.node.register}: left out: the cards of a vendor must be of one chip, and "
                f"{known[0][0].node.register} is here too"
            )

    def _miss(self, found: Found) -> None:
        """Say of each chip that somebody registers with the kubelet, but not for HAMi."""
        for hami in self._known_chips:
            count = self._count(hami)
            if hami.node.encoding and self.node.capacity.get(count):
                found.reasons.append(
                    f"{hami.node.register}: there is no such annotation yet, although the node "
                    f"has {count}: HAMi's device plugin writes it, but the vendor's own doesn't"
                )

    def _is_served(self, hami: HamiVendor, found: Found) -> bool:
        """Tell whether somebody stands behind an annotation: plugins leave it when they go.

        A node that never had the count resource is given the benefit of the doubt.
        """
        count = self._count(hami)
        if self.node.capacity.get(count) != 0:
            return True
        found.reasons.append(
            f"{hami.node.register}: ignored, because the node's capacity of {count} is 0: the "
            "plugin that wrote it is gone"
        )
        return False

    def _devices(self, hami: HamiVendor, found: Found) -> _Devices:
        try:
            text, encoding = self.node.annotations[hami.node.register], hami.node.encoding
            # An old plugin's may be in another encoding.
            devices = decode(text, encoding, self.node.name, or_another=True)
            _check(devices)
        except Malformed as error:
            found.reasons.append(f"{hami.node.register}: {error}")
            return ()
        # The plugin writes them in another order each time.
        return tuple(sorted(devices, key=lambda device: (device.index, device.id)))

    def _add(self, hami: HamiVendor, devices: _Devices, found: Found) -> None:
        register = hami.node.register
        cards = _cards(self.vendor, hami, devices)
        found.cards += cards
        found.registers.add(register)
        ill = [card.uuid for card, said in zip(cards, devices, strict=True) if not said.healthy]
        found.ill |= dict.fromkeys(ill, "HAMi's annotation says so")
        for offer in self.vendor.offers:
            if offer.role is Role.SLOTS:
                continue  # the plugin that wrote the annotation registers it
            named, amounts = self._named(offer, hami), self._amounts(offer, devices)
            if not named.name or amounts is None:
                continue
            if any(amounts):
                found.add_share(named, offer, cards, amounts, self._memory_unit(offer, hami))
            else:
                found.reasons.append(f"{named.name}: left out: no card in {register} has any")

    def _amounts(self, offer: Offer, devices: _Devices) -> tuple[int, ...] | None:
        """Return how much of a resource each card has; None if HAMi doesn't use it here."""
        if offer.role is Role.MEMORY:
            return tuple(device.memory for device in devices)
        if offer.role is Role.CORES:
            if self.vendor.hami.soft_slicing and not self._is_softly_sliced:
                return None
            # Else pods ask for percent of what the cards are registered with.
            if not self.vendor.hami.registers_cores:
                return tuple(device.cores for device in devices)
        return (100,) * len(devices)

    @property
    def _is_softly_sliced(self) -> bool:
        """Whether HAMi's library slices the cards: the node says so, else the configuration."""
        said = self.node.annotations.get(self.vendor.hami.soft_slicing)
        if said is not None:
            return said.strip().lower() in ("true", "t", "1")
        options = self.config.options(self.vendor, self.node.name) if self.config else {}
        return "mode" in options and options["mode"][0] == HAMI_CORE

    def _named(self, offer: Offer, hami: HamiVendor) -> Named:
        """Return a name: the device configuration's or the user's, else HAMi's own."""
        chosen = self.settings.names[offer.role]
        if not self.vendor.has_chips or self._is_left_out(chosen):
            return chosen
        if names := self._configured(hami):
            return Named(names.of(offer.role), "--device-config-file")
        if chosen.name in {offer.name, *map(offer.name_in_hami, self.vendor.words)}:
            return Named(offer.name_in_hami(hami.word), hami.node.register)
        return chosen

    def _is_left_out(self, chosen: Named) -> bool:
        """Tell whether the user left a resource out; the file may do so for another chip."""
        of_file = self.config is not None and chosen.source.startswith(f"{self.config.source}:")
        return not chosen.name and not of_file

    def _count(self, hami: HamiVendor) -> str:
        """Return the name of the count resource, which the real plugin registers."""
        slots = self.vendor.offer(Role.SLOTS)
        return self._named(slots, hami).name if slots else hami.resources.count

    def _memory_unit(self, offer: Offer, hami: HamiVendor) -> int | None:
        """Return the MiB that one device of a memory resource stands for; None: auto decides."""
        factor, names = self.settings.memory_factor, self._configured(hami)
        if names and factor == 1 and self.vendor.has_chips:
            return names.memory_unit
        return factor and factor * offer.memory_unit

    def _configured(self, hami: HamiVendor) -> ResourceNames | None:
        found = self.config.vendors.get(hami.word) if self.config else None
        return found.resources if found else None


def _check(devices: _Devices) -> None:
    ids = Counter(device.id for device in devices)
    for i, device in enumerate(devices):
        if not device.id or ids[device.id] > 1:
            raise Malformed(f"device {i}: the ID {device.id!r} must be present and unique")
        if min(device.memory, device.cores) < 0:
            raise Malformed(f"device {i} ({device.id}): memory and cores must not be negative")


def _cards(vendor: Vendor, hami: HamiVendor, devices: _Devices) -> tuple[Card, ...]:
    # The short colon form has no index.
    are_numbered = len({device.index for device in devices}) == len(devices)
    return tuple(
        Card(
            vendor=vendor,
            index=device.index if are_numbered else position,
            uuid=device.id,
            model=Model(
                name=device.type,
                product=device.type,
                memory=device.memory,
                cores=device.cores,
                family="",
                power=0,
                chip=hami.word if vendor.has_chips else "",
            ),
            memory=device.memory,
            numa=device.numa,
            link=None,
        )
        for position, device in enumerate(devices)
    )
