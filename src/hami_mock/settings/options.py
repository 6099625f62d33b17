"""Every option, once: the flags, the environment variables and the keys of the file.

An option `nvidia-cards` is the flag --nvidia-cards, the variable HAMI_MOCK_NVIDIA_CARDS and the key
`nvidia-cards` (or `cards` under `nvidia`). What a vendor has options for follows from what its
cards offer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from hami_mock.control.protocol import DEFAULT_SOCKET
from hami_mock.node.xid import APPLICATION_ERRORS
from hami_mock.vendors import VENDORS, Offer, Role, Vendor

ENV_PREFIX = "HAMI_MOCK_"


@dataclass(frozen=True)
class Kind:
    """A kind of value: its type for pydantic, and in words what is allowed."""

    annotation: Any
    allowed: str
    metavar: str


def _not_a_boolean(value: object) -> object:
    # YAML's `yes` and `on` are booleans, and for pydantic a boolean is a fine number.
    if isinstance(value, bool):
        raise ValueError("a boolean is not a number")
    return value


_Number = Annotated[int, BeforeValidator(_not_a_boolean)]


def whole(low: int, high: int) -> Kind:
    """Return the kind of whole numbers in a range."""
    annotation = Annotated[_Number, Field(ge=low, le=high)]
    return Kind(annotation, f"a whole number from {low} to {high}", "N")


def scaling() -> Kind:
    """Return the kind of oversubscription factors."""
    annotation = Annotated[
        float, BeforeValidator(_not_a_boolean), Field(gt=0, le=100, allow_inf_nan=False)
    ]
    return Kind(annotation, "a number above 0, at most 100", "X")


def choice(*words: str) -> Kind:
    """Return the kind of a few fixed words."""
    return Kind(Literal[words], "one of " + ", ".join(words), "|".join(words))


def pattern(regex: str, allowed: str, metavar: str) -> Kind:
    """Return the kind of strings that match a pattern as a whole."""

    # Not pydantic's own pattern: its regex engine takes a third of a MB for each.
    def check(value: str) -> str:
        if re.fullmatch(regex, value) is None:
            raise ValueError(allowed)
        return value

    return Kind(Annotated[str, AfterValidator(check)], allowed, metavar)


MOST_CARDS = 128
CARDS = whole(0, MOST_CARDS)
MEMORY = whole(1, 16 * 1024 * 1024)
SPLIT = whole(1, 1024)
SCALING = scaling()
MODEL = pattern(r"\S+", "the name of a card model, see `hami-mock models`", "NAME")
FACTOR = Kind(
    Annotated[_Number, Field(ge=1, le=1024 * 1024)] | Literal["auto"],
    "a whole number from 1 to 1048576, or auto",
    "N|auto",
)
RESOURCE_NAME = pattern(
    r"\S{1,253}", "a resource name such as example.com/gpu, without spaces", "NAME"
)
NODE_NAME = pattern(
    r"[A-Za-z0-9_.-]{1,253}", "a node's name: text of letters, digits, dots and dashes", "NAME"
)
VERSION = pattern(
    r"v?\d{1,2}\.\d{1,3}(\..*)?",
    "a Kubernetes version such as 1.36.4 (in a file: in quotes)",
    "VERSION",
)
SOCKET = pattern(r"(/.*)?", 'an absolute path, or "" for off', "PATH")
XIDS = pattern(
    r"|\d{1,5}(\s*,\s*\d{1,5})*", "numbers with commas, such as 13,31 (in a file: in quotes)", "N,N"
)
SWITCH = Kind(bool, "on or off", "on|off")
SEED = whole(0, 2**31 - 1)
FOLDER = pattern(r"/.*", "an absolute path", "DIR")
FILE = pattern(r".+", "a path", "FILE")
_PORT = r"([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
ADDRESS = pattern(
    rf"|(\[[0-9A-Fa-f:.]+\]|[^:\s]*):{_PORT}",
    'HOST:PORT, :PORT for all addresses, or "" for off',
    "ADDR",
)


@dataclass(frozen=True)
class Option:
    """One option. `default` None means that something else decides; `help` says what."""

    name: str
    kind: Kind
    default: Any
    help: str
    section: str
    aliases: tuple[str, ...] = ()

    @property
    def shown_default(self) -> str:
        """The default as a user would write it; empty if something else decides."""
        if isinstance(self.default, bool):
            return "on" if self.default else "off"
        return "" if self.default is None else str(self.default)

    @property
    def variables(self) -> tuple[str, ...]:
        """The name and its aliases as environment variables."""
        names = (self.name, *self.aliases)
        return tuple(ENV_PREFIX + name.replace("-", "_").upper() for name in names)


GENERAL = (
    Option("config", FILE, None, "a YAML file with any of these options", "General"),
    Option(
        "node-name", NODE_NAME, None, "this node (else $NODE_NAME, else the host's name)", "General"
    ),
    Option(
        "socket-dir",
        FOLDER,
        "/var/lib/kubelet/device-plugins",
        "the folder of the kubelet's and the plugins' sockets",
        "General",
    ),
    Option(
        "http-listen", ADDRESS, ":9396", "where /healthz, /readyz and /metrics answer", "General"
    ),
    Option(
        "kubelet-version",
        VERSION,
        None,
        "what `auto` and the warnings reckon with (else asked of the API server, else the newest)",
        "General",
    ),
    Option(
        "control-socket",
        SOCKET,
        DEFAULT_SOCKET,
        "where `hami-mock ctl` finds this agent",
        "General",
    ),
    Option(
        "pod-resources-socket",
        SOCKET,
        "/var/lib/kubelet/pod-resources/kubelet.sock",
        "where the kubelet says which pod holds which device",
        "General",
    ),
    Option(
        "kubernetes-events",
        SWITCH,
        False,
        "say what happens as Events of the Node too (needs access to the API server)",
        "General",
    ),
    Option(
        "log-level", choice("debug", "info", "warning", "error"), "info", "how much is logged",
        "General",
    ),
    Option("log-format", choice("text", "json"), "text", "how a line of the log looks", "General"),
    Option(
        "hami",
        SWITCH,
        False,
        "be the node side of HAMi: write its annotations, answer its handshakes, "
        "give pods what its scheduler assigned",
        "HAMi",
    ),
    Option(
        "hami-keep-annotations",
        SWITCH,
        False,
        "leave HAMi's annotations on the node when the agent stops",
        "HAMi",
    ),
    Option(
        "source",
        choice("flags", "hami"),
        "flags",
        "where the cards come from; hami: a real plugin's annotations and counts, "
        "for what it doesn't register itself",
        "HAMi",
    ),
    Option(
        "device-config-file",
        FILE,
        None,
        "HAMi's device-config.yaml: names of resources, and how cards are sliced",
        "HAMi",
    ),
    Option(
        "scenario", FILE, None, "a scenario to play from the start (see `hami-mock scenario`)",
        "Faults",
    ),
    Option("seed", SEED, None, "the seed of the scenario (else the one in its file)", "Faults"),
    Option(
        "ignored-xids",
        XIDS,
        ",".join(str(xid) for xid in sorted(APPLICATION_ERRORS)),
        "Xids that are counted but leave a card healthy",
        "Faults",
    ),
)  # fmt: skip


def _vendor_options(vendor: Vendor) -> Iterator[Option]:
    def option(name: str, kind: Kind, default: Any, text: str) -> Option:
        return Option(f"{vendor.key}-{name}", kind, default, text, vendor.title)

    yield option("cards", CARDS, vendor.cards, "cards on the node; 0: none, nothing is registered")
    yield option("model", MODEL, vendor.model, "their model, see `hami-mock models`")
    for offer in vendor.offers:
        if offer.role is Role.MEMORY:
            yield option("memory", MEMORY, None, "MiB per card (else the model's)")
            yield option("memory-scaling", SCALING, 1.0, "oversubscription of memory")
            yield option("memory-factor", FACTOR, 1, _factor_help(offer.memory_unit))
    if vendor.offers_role(Role.CORES):
        yield option("core-scaling", SCALING, 1.0, "oversubscription of compute")
    if vendor.offers_role(Role.SLOTS) and not vendor.is_whole:
        text = "slots that each card is sliced into"
        text += "" if vendor.split else " (else by HAMi's templates of the chip)"
        yield option("split", SPLIT, vendor.split, text)
    if vendor.modes:
        text = "what HAMi's scheduler is told of how cards are sliced"
        yield option("mode", choice(*vendor.modes), vendor.modes[0], text)
    for offer in vendor.offers:
        yield Option(
            offer.flag,
            RESOURCE_NAME,
            offer.name or None,
            _name_help(offer),
            vendor.title,
            offer.flag_aliases,
        )


def _factor_help(memory_unit: int) -> str:
    if memory_unit == 1:
        return "MiB that one unit of the memory resource means"
    return f"how many times {memory_unit} MiB one unit of the memory resource means"


def _name_help(offer: Offer) -> str:
    text = f"name of the resource that counts {offer.role}"
    if offer.hami:
        text += "; without one it isn't registered"
    return f"{text} (--hami on: {offer.name_in_hami('CHIP')})" if offer.hami_name else text


VENDOR_OPTIONS = {vendor.key: tuple(_vendor_options(vendor)) for vendor in VENDORS}
OPTIONS = (*GENERAL, *(option for options in VENDOR_OPTIONS.values() for option in options))
BY_NAME = {name: option for option in OPTIONS for name in (option.name, *option.aliases)}

GROUP_KEYS = {
    "cards": whole(1, MOST_CARDS),
    "model": MODEL,
    "memory": MEMORY,
    "numa": Kind(
        _Number | list[_Number],
        "a NUMA node from 0 to 63, or a list with one for each card of the group",
        "N",
    ),
    "nvlink": Kind(
        list[list[_Number]],
        "lists of card positions in the group, such as [[0, 1], [2, 3]]; a card in one list only",
        "LISTS",
    ),
}
"""The keys of one group of cards."""

GROUP_OPTIONS = {f"{vendor.key}-groups": vendor for vendor in VENDORS}
"""In the file only: lists of groups, for cards of different models on one node."""
