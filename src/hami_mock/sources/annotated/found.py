"""What a node says of its cards."""

from dataclasses import dataclass, field

from hami_mock.node.advice import without_factor
from hami_mock.node.cards import Card
from hami_mock.node.sizing import Share
from hami_mock.settings.vendor_settings import Named
from hami_mock.vendors.vendor import Offer, Role


@dataclass
class Found:
    """What a node says of its cards, and what is missing or wrong.

    - ill: the cards that aren't well, by UUID, and who says so
    - registers: the annotations that cards were read from
    """

    cards: list[Card] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    ill: dict[str, str] = field(default_factory=dict)
    registers: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)

    def add_share(
        self,
        named: Named,
        offer: Offer,
        cards: tuple[Card, ...],
        amounts: tuple[int, ...],
        factor: int | None,
    ) -> None:
        """Add what the cards have of a resource: together the sum over the factor, as HAMi's mock.

        The factor is that of memory.
        """
        vendor = cards[0].vendor
        is_memory = offer.role is Role.MEMORY
        if_many = "the node claims more than any plugin could register"
        coarser = not is_memory or bool(vendor.config.factor)
        if not coarser:
            if_many = without_factor(vendor, offer)
        elif is_memory:
            if_many = (
                f"--{vendor.prefix}-memory-factor; memoryFactor in HAMi's device configuration "
                "must be the same"
            )
        self.shares.append(
            Share(
                name=named.name,
                source=named.source,
                offer=offer,
                vendor=vendor,
                cards=cards,
                amounts=amounts,
                factor=factor if is_memory else 1,
                pooled=True,
                coarser=coarser,
                if_many=if_many,
            )
        )
