"""What HAMi knows of a vendor's cards, as data: its annotations, and its device configuration.

Every agent loads this, so it is light: what takes long to load is only named here, for types.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hami_mock.hami.kinds import JSON, Encoding, Lock, ReportStyle

if TYPE_CHECKING:
    from hami_mock.hami.config_section import Section
    from hami_mock.hami.mig import MigProfile
    from hami_mock.vendors.catalog import Model
    from hami_mock.vendors.handout import Claim, Container, Given

    class CardFacts(Protocol):
        """What a vendor may want to know of one of its cards."""

        @property
        def uuid(self) -> str: ...
        @property
        def model(self) -> "Model": ...
        @property
        def numa(self) -> int | None: ...
        @property
        def link(self) -> str | None: ...


class NodeAnnotations(NamedTuple):
    """Where a node's cards stand, and how; none: the scheduler reckons them from its capacity.

    `report` is how the node side answers the handshake; none: it doesn't, allocatable devices do.
    """

    register: str = ""
    encoding: Encoding | None = None
    handshake: str = ""
    report: ReportStyle | None = None


class PodAnnotations(NamedTuple):
    """Where a pod's devices stand; no `to_allocate`: the vendor's plugin reads something else.

    `assigned` are those that become "true", where they are there, once the pod has its devices.
    """

    allocated: str
    to_allocate: str = ""
    assigned: tuple[str, ...] = ()


def reporting_node(
    register: str,
    handshake: str,
    encoding: Encoding = JSON,
    report: ReportStyle = ReportStyle.DOTTED,
) -> NodeAnnotations:
    """Return those of a plugin that answers the handshake, as most do."""
    handshake = f"hami.io/node-handshake-{handshake}"
    return NodeAnnotations(f"hami.io/node-{register}", encoding, handshake, report)


def pod_annotations(name: str, assigned: tuple[str, ...] = ()) -> PodAnnotations:
    prefix = f"hami.io/{name}-devices"
    return PodAnnotations(f"{prefix}-allocated", f"{prefix}-to-allocate", assigned)


class MadeInstance(NamedTuple):
    """An instance that a container has got: which container's, of which card, and its names."""

    position: int
    card: str
    profile: str
    start: int
    uuid: str
    gpu_instance: int
    compute_instance: int


class Instances(NamedTuple):
    """Where a pod's instances of cards stand, and how they are read. Reading raises Malformed."""

    annotation: str
    read: Callable[[str], Sequence[MadeInstance]]


class Scheduling(NamedTuple):
    """What HAMi's scheduler reads and writes. {word} in an annotation's name is its word.

    - lock: of the node, from the scheduler's bind until the plugin has allocated
    - slots: of a card, by word, where templates make them
    - has_model_as_type: a card's type is its model, with the word in it; else it is the word
    - registers_cores: a card is registered with as many cores as it has; else with percent
    - sums_cores: of a pod with several cards the scheduler itself makes 100 percent for each
    - soft_slicing: the node's annotation that says whether HAMi's library slices the cards, instead
      of a mode for each; only then are cores percent, and a resource
    - scores: the annotation that says how well each two cards are connected
    - cordon: the annotation that takes cards out of use
    - switch: the scheduler's flag without which it doesn't look at them
    - card_modes: the modes that a card can be registered with, where they matter
    - variables: what else a container's environment has, see `handout.environment`
    - custom: what else a card is registered with, by word, index and product
    - beside: the node's annotations that stand beside that with the cards
    - profiles: what a card of a model can be cut into, in MIG mode
    - instances: what cards were cut into for a pod
    - device_id: what the scheduler calls a card, from {node} and {index}; else it is its UUID
    - asks_slices: what a container asks for are slices of one card, for which it gets one device
    - sets_bind_phase: the plugin says on a pod that it has all its devices; some vendors' own don't
    - next_claim: what a pod's annotations say is to be allocated next, if not `to_allocate`
    - hand_out: what a container gets, if not only the variables
    """

    pods: PodAnnotations
    node: NodeAnnotations = NodeAnnotations()
    lock: Lock | None = None
    slots: Mapping[str, int] | None = None
    has_model_as_type: bool = False
    registers_cores: bool = False
    sums_cores: bool = False
    soft_slicing: str = ""
    scores: str = ""
    cordon: str = ""
    switch: str = ""
    card_modes: frozenset[str] = frozenset()
    variables: tuple[tuple[str, str], ...] = ()
    custom: Callable[[str, int, str], Mapping[str, Any]] = lambda *_: {}
    beside: "Callable[[Sequence[CardFacts], str], Mapping[str, str]]" = lambda *_: {}
    profiles: Callable[["Model"], "tuple[MigProfile, ...]"] = lambda _: ()
    instances: Instances | None = None
    device_id: str = ""
    asks_slices: bool = False
    sets_bind_phase: bool = True
    next_claim: "Callable[[Mapping[str, str], int], Claim | None] | None" = None
    hand_out: "Callable[[Container], Given] | None" = None


class ConfigSection(NamedTuple):
    """Where HAMi's device configuration speaks of a vendor; each offer has its key in there.

    - factor: the key of the factor for the memory unit
    - more: other sections that `options` reads
    - chips: the sections of single chips, each with its commonWord, where there are such
    - slots: what such a section comes to in slots
    - options: what the file says of our options for the vendor on a node: value and key of each
    """

    name: str
    factor: str = ""
    more: tuple[str, ...] = ()
    chips: "Callable[[Section], list[Section]] | None" = None
    slots: "Callable[[Section], int] | None" = None
    options: "Callable[[Section, str], Mapping[str, tuple[object, str]]] | None" = None
