"""A resource before it has devices: which cards have how much of it."""

from dataclasses import dataclass, field

from hami_mock.node.cards import Card
from hami_mock.vendors.vendor import Offer, Vendor


@dataclass(frozen=True)
class Portion:
    """What a resource will be.

    - amounts: of each card; MiB of memory, else devices
    - factor: MiB that one device stands for; None: let `auto` decide. 1 for what isn't memory.
    """

    name: str
    source: str
    offer: Offer
    vendor: Vendor
    cards: tuple[Card, ...]
    amounts: tuple[int, ...]
    factor: int | None = 1


@dataclass
class Found:
    """What a node says of its cards, and what is missing or wrong.

    - ill: the cards that aren't well, by UUID, and who says so
    - registers: the annotations that cards were read from
    """

    cards: list[Card] = field(default_factory=list)
    portions: list[Portion] = field(default_factory=list)
    ill: dict[str, str] = field(default_factory=dict)
    registers: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
