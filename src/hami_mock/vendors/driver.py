"""What a maker's driver says of cards and leaves on a machine, as data. Loaded where it is shown.

What is said of a card goes by the names of fields in the state file (`views.driver.layout`). Paths
are within the driver root.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from hami_mock.vendors.catalog import Model


class DriverCard(Protocol):
    """What a driver knows of a card."""

    @property
    def uuid(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def model(self) -> "Model": ...
    @property
    def memory(self) -> int: ...
    @property
    def numa(self) -> int | None: ...
    @property
    def link(self) -> str | None: ...
    @property
    def minor(self) -> int: ...
    @property
    def pci_bus_id(self) -> str: ...
    @property
    def serial(self) -> str: ...


class Machine(NamedTuple):
    """All of a maker's cards, the driver's version, and how many CPUs there are."""

    cards: Sequence[DriverCard]
    version: str
    cpus: int = 1


class DeviceNode(NamedTuple):
    """A character node. `card` is the UUID of the card that it is for; empty: for all of them."""

    path: str
    major: int
    minor: int
    card: str = ""


class Mount(NamedTuple):
    """A file, link or folder of every root, and where containers that get a card find it."""

    source: str
    target: str


@dataclass(frozen=True)
class Driver:
    """A maker's driver.

    - about: the header's fields for a version; identify: a card's identity, with the names of its
      flags
    - standing: the live fields that no reading decides, of a card with that identity
    - clock_reasons: the bit of each reason why clocks are low (`node.readings.Throttle`)
    - policies: for each reason, which counters of `violations` it makes grow
    - event_types: the types of the events that an error of that number is
    - compute_profile: which kind of compute instance has so many slices; compute_slices: how many
      a kind has, 0 if there is no such kind
    - recovery: what the driver advises after these errors, and `failed` after any other
    - library, placeholders, program: names in lib64 and bin; {version} is the driver's. Links have
      no version, or the first number after .so
    - files: texts by path; nodes: character nodes, beneath dev
    - mounts: what a container gets beside its nodes
    - cdi_kind: what CDI calls the cards
    """

    about: Callable[[str], Mapping[str, Any]]
    identify: Callable[[DriverCard, Machine], Mapping[str, Any]]
    standing: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    clock_reasons: Mapping[str, int]
    policies: Mapping[str, Sequence[int]]
    event_types: Callable[[int], tuple[int, ...]]
    compute_profile: Callable[[int], int]
    compute_slices: Callable[[int], int]
    recovery: Mapping[int, int]
    failed: int
    library: str
    placeholders: tuple[str, ...]
    program: str
    files: Callable[[Machine], Mapping[str, str]]
    nodes: Callable[[Sequence[DriverCard]], Iterable[DeviceNode]]
    mounts: tuple[Mount, ...]
    cdi_kind: str
