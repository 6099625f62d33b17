"""What a container gets of the node's cards. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hami_mock.node.cards import Card


class Allotted(NamedTuple):
    """What a container gets: its environment, and the cards that it may see.

    A card of which it has several devices may be there as often.
    """

    variables: Mapping[str, str]
    cards: Sequence[Card] = ()
