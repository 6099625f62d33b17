"""What a card can be cut into."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hami_mock.vendors.catalog import Model


class InstanceProfile(NamedTuple):
    """A kind of instance: a part of a card that is a device of its own.

    - name: 3g.20gb
    - number: which of the management library's kinds it is; id: what the maker's tool calls it
    - slices: of the card's compute; units: of its memory, as places on the card are counted
    - memory: MiB
    - most: how many of it a card has room for
    - starts: the units at which one may begin
    """

    name: str
    number: int
    id: int
    slices: int
    units: int
    memory: int
    most: int
    starts: tuple[int, ...]
    multiprocessors: int
    copy: int
    decoders: int
    encoders: int
    jpegs: int
    ofas: int


class Cutting(NamedTuple):
    """How a maker's cards are cut into instances.

    - profiles: what cards of a model can be cut into; nothing if they can't
    - instance_id: the number of an instance with so many units, from a unit on, of all there are
    - uuid: of a device: from its card, its profile, where it begins and its number there
    """

    profiles: "Callable[[Model], tuple[InstanceProfile, ...]]"
    instance_id: Callable[[int, int, int], int]
    uuid: Callable[[str, str, int, int], str]


def most_slices(profiles: Iterable[InstanceProfile]) -> int:
    """Return how many slices of compute a card has that can be cut into these."""
    return max((profile.slices for profile in profiles), default=0)
