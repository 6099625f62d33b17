"""Settings → cards: the node's hardware, if it had any. Pure."""

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hami_mock import vendors
from hami_mock.kit.text import cut
from hami_mock.vendors import Vendor
from hami_mock.vendors.catalog import Model

# Any fixed namespace will do; a change of it would rename every card of every node.
_NAMESPACE = uuid.UUID("5b1d3f0a-7c8e-4f52-9a36-1f6c2e0d4b87")
_FIRST_BUS = 0x1B
"""The bus of a vendor's first card; those before it have bridges and disks."""


@dataclass(frozen=True)
class CardGroup:
    """Cards of one model, side by side on a node.

    `numa` has the NUMA node of each card (None: not said), `links` sets of card positions in this
    group that are linked to each other (NVLink and its like). `cut` are the profiles that each card
    is cut into; None: it isn't.
    """

    model: Model
    memory: int
    numa: tuple[int | None, ...]
    links: tuple[frozenset[int], ...] = ()
    cut: tuple[str, ...] | None = None

    @property
    def cards(self) -> int:
        return len(self.numa)


@dataclass(frozen=True)
class Card:
    """One card. Its UUID is its name everywhere; its index counts within its vendor.

    `mode` is how it is sliced, where its vendor has several ways.
    """

    vendor: Vendor
    index: int
    uuid: str
    model: Model
    memory: int
    numa: int | None
    link: str | None
    cut: tuple[str, ...] | None = None
    mode: str = ""

    def __post_init__(self) -> None:
        # A real plugin's annotation may have anything for an ID or a model, and all views show it.
        object.__setattr__(self, "uuid", cut(self.uuid, len(self.uuid)))
        if not f"{self.model.name}{self.model.product}".isprintable():
            named = replace(self.model, name=cut(self.model.name), product=cut(self.model.product))
            object.__setattr__(self, "model", named)

    @property
    def name(self) -> str:
        """What people call it: nvidia/0."""
        return f"{self.vendor.prefix}/{self.index}"

    @property
    def minor(self) -> int:
        """The number of its device file."""
        return self.index

    @property
    def pci_bus_id(self) -> str:
        """Where it is plugged in: each vendor's cards in a PCI domain of their own."""
        prefixes = [vendor.prefix for vendor in vendors.VENDORS]
        domain = prefixes.index(self.vendor.prefix)
        return f"{domain:08X}:{_FIRST_BUS + self.index:02X}:00.0"

    @property
    def serial(self) -> str:
        """The number on its label, 13 digits."""
        digest = hashlib.sha1(self.uuid.encode(), usedforsecurity=False).digest()
        return f"{int.from_bytes(digest[:8]) % 10**13:013}"

    @property
    def visible_as(self) -> str:
        return self.vendor.identity.format(uuid=self.uuid, index=self.index)


def make_cards(
    node_name: str, vendor: Vendor, groups: Iterable[CardGroup], mode: str = ""
) -> tuple[Card, ...]:
    """Return a vendor's cards on a node, numbered through all of its groups."""
    cards: list[Card] = []
    for number, group in enumerate(groups):
        for position, numa in enumerate(group.numa):
            index = len(cards)
            links = (f"{number}.{n}" for n, linked in enumerate(group.links) if position in linked)
            cards.append(
                Card(
                    vendor=vendor,
                    index=index,
                    uuid=card_uuid(node_name, vendor, index),
                    model=group.model,
                    memory=group.memory,
                    numa=numa,
                    link=next(links, None),
                    cut=group.cut,
                    mode=mode,
                )
            )
    return tuple(cards)


def card_uuid(node_name: str, vendor: Vendor, index: int) -> str:
    """Return the UUID of a card: the same for the same node, vendor and index, for ever."""
    name = f"{node_name}/{vendor.prefix}/{index}"
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest().upper()
    return vendor.uuid_format.format(
        uuid=uuid.uuid5(_NAMESPACE, name),
        # Ascend's tools name a chip by its die: five words of 32 bits.
        die_id="-".join(digest[word : word + 8] for word in range(0, 40, 8)),
    )
