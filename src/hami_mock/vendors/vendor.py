"""What there is to know of a vendor, apart from what HAMi's scheduler reads and writes."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a resource counts on a card."""

    SLOTS = "slots"
    MEMORY = "memory"
    CORES = "cores"
    PERCENTAGE = "percentage"


class Identity(StrEnum):
    """How a vendor's visible-devices variable names a card."""

    UUID = "uuid"
    INDEX = "index"


@dataclass(frozen=True)
class Offer:
    """One resource that a vendor's cards offer.

    - name: what it is called unless the user says otherwise; "" for one that is registered only
      with --hami on, or if the user gives it a name
    - flag: the option that names it
    - heads: the first characters of its unit IDs (`unit_ids`): no two offers of any vendor share
      one, so no two resources share an ID; they stay as they are for ever, for pods hold such IDs
    - hami_name: what HAMi 2.10 calls it, where that differs; {chip} is HAMi's word for the chip
    - memory_unit: MiB that one device stands for, before the user's factor
    - per_card: devices that all cores of a card are (100: percent); None: as many as it has cores
    """

    role: Role
    name: str
    flag: str
    heads: str = ""
    flag_aliases: tuple[str, ...] = ()
    hami_name: str = ""
    memory_unit: int = 1
    per_card: int | None = 100

    @property
    def hami(self) -> bool:
        """Whether it takes --hami on, or a name from the user, to register it."""
        return not self.name

    def name_in_hami(self, chip: str) -> str:
        """Return what HAMi 2.10 calls it on cards with that chip."""
        return (self.hami_name or self.name).format(chip=chip)


@dataclass(frozen=True)
class Vendor:
    """A maker of cards. `key` is the prefix of its flags and its key in the catalog.

    - words: what HAMi's scheduler calls its cards; more than one if it has one for each chip, and
      then each model of the catalog has its own
    - visible_devices: the environment variables that tell a container its cards: the vendor's
      plugins of different ages set different ones
    - split: slots of a card; None: what HAMi's templates make of the chip
    - is_whole: its cards are given to containers whole. The scheduler takes each slot for a card.
    - has_xids: its driver reports errors by number, as NVIDIA's Xids
    - modes: in which ways its cards can be sliced, the default first
    """

    key: str
    title: str
    model: str
    uuid_format: str
    words: tuple[str, ...]
    offers: tuple[Offer, ...]
    visible_devices: tuple[str, ...] = ()
    identity: Identity = Identity.UUID
    cards: int = 0
    split: int | None = 10
    is_whole: bool = False
    modes: tuple[str, ...] = ()
    has_xids: bool = False

    @property
    def has_chips(self) -> bool:
        """Whether HAMi names its resources after the chip of the cards."""
        return len(self.words) > 1

    def offers_role(self, role: Role) -> bool:
        """Tell whether any resource of this vendor counts that."""
        return any(offer.role is role for offer in self.offers)
