"""What there is to know of a vendor: one object, which stands in the file with the maker's name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from hami_mock.kubelet.unit_ids import LEAD
from hami_mock.vendors.labelling import UNLABELLED, Labelling
from hami_mock.vendors.scheduling import ConfigSection, Scheduling

if TYPE_CHECKING:
    # What HAMi's scheduler knows takes long to load, and few agents need it.
    from hami_mock.vendors.dra import DraDriver, Profile
    from hami_mock.vendors.driver import Driver
    from hami_mock.vendors.exporter import Exporter
    from hami_mock.vendors.hami_vendor import HamiVendor
    from hami_mock.vendors.instance_profile import Cutting
    from hami_mock.vendors.smi import Tool


class Role(StrEnum):
    """What a resource counts on a card."""

    SLOTS = "slots"
    MEMORY = "memory"
    CORES = "cores"
    PERCENTAGE = "percentage"


class Identity(StrEnum):
    """How a vendor's visible-devices variable names a card."""

    UUID = "{uuid}"
    INDEX = "{index}"
    DEVICE_FILE = "card_{index}"


_CONFIG_KEYS = {
    Role.SLOTS: "resourceCountName",
    Role.MEMORY: "resourceMemoryName",
    Role.CORES: "resourceCoreName",
    Role.PERCENTAGE: "resourceMemoryPercentageName",
}


class Offer(NamedTuple):
    """One resource that a vendor's cards offer.

    - name: what it is called unless the user says otherwise; "" for one that is registered only
      with --hami on, or if the user gives it a name
    - flag: the option that names it
    - heads: the first characters of its unit IDs (`unit_ids`): no two offers of any vendor share
      one, so no two resources share an ID; they stay as they are for ever, for pods hold such IDs
    - hami_name: what HAMi 2.10 calls it, where that differs; {chip} is HAMi's word for the chip
    - memory_unit: MiB that one device stands for, before the user's factor
    - per_card: devices that all cores of a card are (100: percent); None: as many as it has cores
    - own_key: the key that names it in HAMi's device configuration, if not the usual one
    """

    role: Role
    name: str
    flag: str
    heads: str = ""
    hami_name: str = ""
    flag_aliases: tuple[str, ...] = ()
    memory_unit: int = 1
    per_card: int | None = 100
    own_key: str = ""

    @property
    def hami(self) -> bool:
        """Whether it takes --hami on, or a name from the user, to register it."""
        return not self.name

    @property
    def config_key(self) -> str:
        return self.own_key or _CONFIG_KEYS[self.role]

    def name_in_hami(self, chip: str) -> str:
        return (self.hami_name or self.name).format(chip=chip)


# The offers of a vendor whose flags have the usual names.
def slot_offer(maker: str, name: str, key: str = "") -> Offer:
    return Offer(Role.SLOTS, name, f"{maker}-resource-name", own_key=key)


def memory_offer(maker: str, name: str, head: str, unit: int = 1, key: str = "") -> Offer:
    flag = f"{maker}-resource-memory-name"
    return Offer(Role.MEMORY, name, flag, LEAD + head, memory_unit=unit, own_key=key)


def core_offer(
    maker: str, name: str, head: str, per_card: int | None = 100, key: str = ""
) -> Offer:
    flag = f"{maker}-resource-core-name"
    return Offer(Role.CORES, name, flag, LEAD + head, per_card=per_card, own_key=key)


class CountRule(NamedTuple):
    """How HAMi's mock makes a resource of what the vendor's own plugin registers.

    There are allocatable // divisor x amount devices of it. `source` is the resource of that
    plugin, or the role of one that the user may name.
    """

    source: str | Role
    role: Role
    divisor: int
    amount: int


@dataclass(frozen=True, eq=False, repr=False)
class Vendor:
    """A maker's cards, as one of its device plugins gives them out.

    - maker: its name, everywhere but where users know it by another one; its key in the catalog
    - product: tells two plugins of one maker apart
    - flag_prefix: what its flags and its cards' names begin with, if not its name. UUIDs are made
      from it, so it stays as it is for ever
    - words: what HAMi's scheduler calls its cards; more than one if it has one for each chip, and
      then each model of the catalog has its own
    - visible_devices: the environment variables that tell a container its cards: the vendor's
      plugins of different ages set different ones
    - split: slots of a card; None: what HAMi's templates make of the chip
    - is_whole: its cards are given to containers whole. The scheduler takes each slot for a card.
    - modes: in which ways its cards can be sliced, the default first
    - has_xids: its driver reports errors by number
    - counted: the resource that can be derived from what its own plugin registers
    - cutting: loads how its cards are cut into instances, if some can be
    - exporter: loads what its exporter serves; None if nobody reads one
    - smi: loads what its tools print, the usual one first; None: nobody parses what they print
    - driver: loads what its driver shows where a node has one (--driver); None: it has none
    - oldest_driver: the oldest branch of it that can be shown
    - dra: loads its DRA drivers by profile (--dra); None: it has none of its own
    - labels: what tools look for on a node with its cards
    """

    maker: str
    title: str
    model: str
    uuid_format: str
    words: tuple[str, ...]
    offers: tuple[Offer, ...]
    hami: Scheduling
    config: ConfigSection
    product: str = ""
    flag_prefix: str = ""
    visible_devices: tuple[str, ...] = ()
    identity: Identity = Identity.UUID
    cards: int = 0
    split: int | None = 10
    is_whole: bool = False
    modes: tuple[str, ...] = ()
    has_xids: bool = False
    counted: CountRule | None = None
    cutting: "Callable[[], Cutting] | None" = None
    exporter: "Callable[[], Exporter] | None" = None
    smi: "Callable[[], tuple[Tool, ...]] | None" = None
    driver: "Callable[[], Driver] | None" = None
    oldest_driver: int = 0
    dra: "Callable[[], Mapping[Profile, DraDriver]] | None" = None
    labels: Labelling = UNLABELLED

    @property
    def name(self) -> str:
        return f"{self.maker}-{self.product}" if self.product else self.maker

    @property
    def prefix(self) -> str:
        return self.flag_prefix or self.name

    @property
    def has_chips(self) -> bool:
        return len(self.words) > 1

    @cached_property
    def chips(self) -> Mapping[str, "HamiVendor"]:
        """What HAMi's scheduler knows of its cards, by the scheduler's word."""
        from hami_mock.vendors.hami_vendor import known

        return known(self)

    def driver_version(self, of_node: str) -> str | None:
        """Return its driver's version, where anything says one; `of_node` is --driver-version."""
        if self.driver:
            return of_node
        of_exporter = self.exporter().driver if self.exporter else ""
        of_tools = (tool.version for tool in (self.smi() if self.smi else ()))
        return of_exporter or next(of_tools, "") or None

    def offer(self, role: Role) -> Offer | None:
        return next((offer for offer in self.offers if offer.role is role), None)

    def offers_role(self, role: Role) -> bool:
        return self.offer(role) is not None

    def whole(self, product: str, word: str, offer: Offer, hami: Scheduling) -> Self:
        """Return the product that gives cards out whole, beside this one, which slices them.

        On a real node each is a plugin of its own, and a card belongs to one of them.
        """
        return replace(
            self,
            product=product,
            title=f"{self.title}, whole cards",
            words=(word,),
            split=1,
            is_whole=True,
            offers=(offer,),
            visible_devices=(),
            hami=hami,
        )
