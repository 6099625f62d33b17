"""What HAMi knows of a vendor's cards, as data: its annotations, and its device configuration.

Every agent loads this, so it is light: what takes long to load is only named here, for types.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hami_mock.hami.kinds import JSON, Encoding, Lock, ReportStyle
from hami_mock.vendors.asking import Asking

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
        def index(self) -> int: ...
        @property
        def pci_bus_id(self) -> str: ...
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


class Scores(NamedTuple):
    """The annotation that says how well each two cards are connected, and how it is made."""

    annotation: str
    make: "Callable[[Sequence[CardFacts]], str]"


class AllowedProfiles(NamedTuple):
    """What cards may be cut into whose type has one of the models in it."""

    models: tuple[str, ...]
    profiles: tuple[str, ...]


Allowed = tuple[AllowedProfiles, ...] | None
"""The first rule that fits counts; None: nobody has said anything."""


class PluginConfig(NamedTuple):
    """What HAMi's configuration says of a vendor's plugin on a node, beside our options.

    - words: what `Scheduling.variables` are filled in with
    - left_out: UUIDs and indices of cards that the plugin passes over
    - allowed: what cards may be cut into
    """

    words: Mapping[str, str] = {}
    left_out: frozenset[str | int] = frozenset()
    allowed: Allowed = None

    def passes_over(self, card: "CardFacts") -> bool:
        return bool({card.uuid, card.index} & self.left_out)


UNCONFIGURED = PluginConfig()
"""There is no configuration, or it says nothing of the plugin."""


class Scheduling(NamedTuple):
    """What HAMi's scheduler reads and writes. {word} in an annotation's name is its word.

    - lock: of the node, from the scheduler's bind until the plugin has allocated
    - slots: of a card, by word, where templates make them
    - has_model_as_type: a card's type is its model, with the word in it; else it is the word
    - registers_cores: a card is registered with as many cores as it has; else with percent
    - sums_cores: of a pod with several cards the scheduler itself makes 100 percent for each
    - soft_slicing: the node's annotation that says whether HAMi's library slices the cards, instead
      of a mode for each; only then are cores percent, and a resource
    - scores: how well each two cards are connected, where its plugin can say so
    - cordon: the annotation that takes cards out of use
    - switch: the scheduler's flag without which it doesn't look at them
    - mode: what a card is registered with, where it can be sliced in one way only
    - card_modes: the modes that a card can be registered with, where they matter
    - variables: what else a container's environment has, see `handout.environment`
    - words: what these are filled in with if HAMi's configuration is that of its chart
    - numbers_anew: cards are registered with numbers without gaps, whichever the node has
    - custom: what else a card is registered with, by word
    - beside: the node's annotations that stand beside that with the cards
    - profiles: what a card of a model can be cut into, in MIG mode, if so much is allowed
    - has_rule: tells whether a rule for profiles fits a card's type; without any: of HAMi's chart
    - instances: what cards were cut into for a pod
    - device_id: what the scheduler calls a card, from {node} and {index}; else it is its UUID
    - asks_slices: what a container asks for are slices of one card, for which it gets one device
    - sets_bind_phase: the plugin says on a pod what became of it; some vendors' own don't
    - says_success: it does so when a pod has all its devices, and not only when it failed
    - next_claim: what a pod's annotations say is to be allocated next, if not `to_allocate`
    - shared: the annotation of the node's other pods that decides what a container gets
    - hand_out: what a container gets, if not only the variables
    - asking: how the scheduler reads what a container asks for
    """

    pods: PodAnnotations
    node: NodeAnnotations = NodeAnnotations()
    lock: Lock | None = None
    slots: Mapping[str, int] | None = None
    has_model_as_type: bool = False
    registers_cores: bool = False
    sums_cores: bool = False
    soft_slicing: str = ""
    scores: Scores | None = None
    cordon: str = ""
    switch: str = ""
    mode: str = ""
    card_modes: frozenset[str] = frozenset()
    variables: tuple[tuple[str, str], ...] = ()
    words: Mapping[str, str] = {}
    numbers_anew: bool = False
    custom: "Callable[[str, CardFacts], Mapping[str, Any]]" = lambda *_: {}
    beside: "Callable[[Sequence[CardFacts], str], Mapping[str, str]]" = lambda *_: {}
    profiles: "Callable[[Model, Allowed], tuple[MigProfile, ...]]" = lambda *_: ()
    has_rule: "Callable[[str, Allowed], bool]" = lambda *_: True
    instances: Instances | None = None
    device_id: str = ""
    asks_slices: bool = False
    sets_bind_phase: bool = True
    says_success: bool = True
    next_claim: "Callable[[Mapping[str, str], int], Claim | None] | None" = None
    shared: str = ""
    hand_out: "Callable[[Container], Given] | None" = None
    asking: Asking = Asking()


class ChipConfig(NamedTuple):
    """What a chip's section says of each of its cards: slots, MiB and cores; 0: as it is."""

    slots: int
    memory: int
    cores: int


class ConfigSection(NamedTuple):
    """Where HAMi's device configuration speaks of a vendor; each offer has its key in there.

    - factor: the key of the factor for the memory unit
    - more: other sections that `options` and `plugin` read
    - chips: the sections of single chips, each with its commonWord, where there are such
    - chip: what such a section says of a card
    - options: what the file says of our options for the vendor on a node: value and key of each
    - plugin: what else it says of the vendor's plugin on a node
    """

    name: str
    factor: str = ""
    more: tuple[str, ...] = ()
    chips: "Callable[[Section], list[Section]] | None" = None
    chip: "Callable[[Section], ChipConfig] | None" = None
    options: "Callable[[Section, str], Mapping[str, tuple[object, str]]] | None" = None
    plugin: "Callable[[Section, str], PluginConfig] | None" = None
