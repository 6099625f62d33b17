"""What HAMi's scheduler makes of what a container asks of a vendor's cards, where vendors differ.

Every agent loads this, so it is light.
"""

from collections.abc import Callable
from typing import NamedTuple


class Selectors(NamedTuple):
    """The annotations of a pod that say which cards it wants; "" for none.

    - types, no_types: parts of a card's type, separated by commas
    - uuids, no_uuids: IDs of cards
    - mode: how the card must be sliced
    - numa: true wants all cards of a container on one NUMA node
    """

    types: str = ""
    no_types: str = ""
    uuids: str = ""
    no_uuids: str = ""
    mode: str = ""
    numa: str = ""


class Asking(NamedTuple):
    """How a request is read.

    - cores: percent of each card, for who says nothing
    - whole_has_all_cores: who asks for all of a card's memory, and for no cores, has all of them
    - of_own_cores: percent are of the cores that a card is registered with
    - cores_follow_memory: a share of the memory is as large a share of the cores
    - no_memory: a share takes none of a card's memory
    - divided: memory and cores are for all cards of a container together
    - by_pairs: the topology policy looks at how well cards are connected
    - default_count: how many cards HAMi's webhook asks for in the name of who asks for memory or
      cores, and for no card
    - steps: the MiB that a share can have, from HAMi's word for the chip; none: any
    """

    cores: int = 0
    selectors: Selectors = Selectors()
    whole_has_all_cores: bool = False
    of_own_cores: bool = False
    cores_follow_memory: bool = False
    no_memory: bool = False
    divided: bool = False
    by_pairs: bool = False
    default_count: int = 0
    steps: Callable[[str], tuple[int, ...]] = lambda _word: ()


def selectors(domain: str, uuids: str = "gpuuuid", types: str = "") -> Selectors:
    """Return those of a vendor that calls them in the usual way: DOMAIN/use-… and nouse-…."""
    return Selectors(
        types and f"{domain}/use-{types}",
        types and f"{domain}/nouse-{types}",
        f"{domain}/use-{uuids}",
        f"{domain}/nouse-{uuids}",
    )
