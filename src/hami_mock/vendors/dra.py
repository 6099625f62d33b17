"""What a DRA driver publishes of cards and gives to containers, as data. Loaded with --dra.

A driver here stands in for a real one: names of devices, attributes and capacities are those that
people write claims against.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hami_mock.vendors.driver import DriverCard
    from hami_mock.vendors.instance_profile import InstanceProfile
    from hami_mock.vendors.vendor import Vendor

MI = 2**20
GI = 2**30


class Profile(StrEnum):
    """Whose names the devices have."""

    HAMI = "hami"
    NVIDIA = "nvidia"
    EXAMPLE = "example"


class Version(str):
    """An attribute that is compared as a version: three numbers."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> "Version":
        """Return a version as the API server takes it: 580.95.05 is 580.95.5, and 8.0 is 8.0.0."""
        numbers = [str(int(part)) for part in text.split(".") if part.isdigit()]
        return cls(".".join([*numbers, "0", "0", "0"][:3]))


Attribute = str | int | bool | Version


class Capacity(NamedTuple):
    """How much of something a device has.

    Where `step` isn't 0, claims may ask for parts of it: multiples of `step` from `least` on, and
    all of it if they don't say.
    """

    value: int
    step: int = 0
    least: int = 0
    is_binary: bool = True


class Place(NamedTuple):
    """Where on a card an instance is, or would be."""

    profile: "InstanceProfile"
    start: int
    uuid: str


@dataclass(frozen=True)
class Device:
    """A device of a card.

    - is_shared: several claims may have parts of it
    - consumes: how much it takes of each of the card's counters; nothing: the card has none
    - is_whole: it is the card, not a part of it
    - place: the instance that it is
    """

    name: str
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, Capacity]
    is_shared: bool = False
    consumes: Mapping[str, int] = field(default_factory=dict)
    place: Place | None = None

    @property
    def is_whole(self) -> bool:
        return self.place is None


class CardHere(NamedTuple):
    """A card on its node.

    - number: of the card, different from that of any other card of any vendor
    - mode: how it is sliced, where its vendor has several ways
    - places: None: it can't be cut now. Else what was cut out of it; nothing yet, at first
    - possible: all that could be cut out of it
    """

    card: "DriverCard"
    node: str
    driver_version: str
    number: int
    mode: str = ""
    places: tuple[Place, ...] | None = None
    possible: tuple[Place, ...] = ()


class Given(NamedTuple):
    """A device that a claim got, and how much of it: MiB and percent."""

    card: "DriverCard"
    device: str
    memory: int
    cores: int
    place: Place | None = None
    share: str = ""


class ClaimHere(NamedTuple):
    """A claim whose devices are given, on its node."""

    uid: str
    node: str
    is_admin: bool = False


@dataclass(frozen=True)
class DraDriver:
    """A DRA driver.

    - name: what slices and claims call it
    - devices: those of a card
    - environment: the variables of a container that gets the devices of a request
    - cores: the capacity that is percent of a card's compute; memory is always "memory"
    - cdi_class: what CDI calls its devices
    - classes: the DeviceClasses that a device is of
    - shares: whether a device with these attributes is given out in parts
    - counts: whether one with these attributes and capacities needs counters, because parts of its
      card are devices too
    """

    name: str
    devices: Callable[[CardHere], Iterable[Device]]
    environment: Callable[[Sequence[Given], ClaimHere], Mapping[str, str]]
    classes: Callable[[Mapping[str, object]], Iterable[str]]
    cores: str = ""
    cdi_class: str = "claim"
    shares: Callable[[Mapping[str, object]], bool] = lambda _: False
    counts: Callable[[Mapping[str, object], Container[str]], bool] = lambda *_: False

    @property
    def cdi_kind(self) -> str:
        return f"k8s.{self.name}/{self.cdi_class}"


def driver_of(vendor: "Vendor", profile: Profile) -> DraDriver | None:
    """Return what publishes a vendor's cards in a profile; None: nothing does."""
    if profile is Profile.EXAMPLE:
        from hami_mock.vendors.dra_example import EXAMPLE

        return EXAMPLE
    return vendor.dra().get(profile) if vendor.dra else None
