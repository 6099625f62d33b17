"""Every option, once: flags, variables, keys of the file, help, and when a change takes effect.

An option `nvidia-cards` is the flag --nvidia-cards, the variable HAMI_MOCK_NVIDIA_CARDS and the key
`nvidia-cards` (or `cards` under `nvidia`). What a vendor has options for follows from what its
cards offer. docs/flags.md, the JSON Schema and `hami-mock init` are made from these.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hami_mock.kit.values import SEED, SWITCH, Kind, choice
from hami_mock.node.xid import APPLICATION_ERRORS
from hami_mock.settings import kinds
from hami_mock.settings.places import CONTROL_SOCKET
from hami_mock.vendors import VENDORS, Offer, Role, Vendor

ENV_PREFIX = "HAMI_MOCK_"


class Takes(StrEnum):
    """When a change takes effect on an agent that runs."""

    AT_ONCE = "at once"
    AT_START = "at the next start"


@dataclass(frozen=True)
class Option:
    """One option. `default` None means that something else decides; `help` says what.

    `fixed` says why an agent that runs can't take another value at all.
    """

    name: str
    kind: Kind[Any]
    default: Any
    help: str
    section: str
    aliases: tuple[str, ...] = ()
    takes_effect: Takes = Takes.AT_ONCE
    fixed: str = ""

    @property
    def shown_default(self) -> str:
        """The default as a user would write it; empty if something else decides."""
        return "" if self.default is None else self.kind.show(self.default)

    @property
    def field(self) -> str:
        """The name as that of an attribute of the settings."""
        return self.name.replace("-", "_")

    @property
    def variables(self) -> tuple[str, ...]:
        """The name and its aliases as environment variables."""
        names = (self.name, *self.aliases)
        return tuple(ENV_PREFIX + name.replace("-", "_").upper() for name in names)


def _at_start(name: str, kind: Kind[Any], default: Any, text: str, section: str) -> Option:
    return Option(name, kind, default, text, section, takes_effect=Takes.AT_START)


GENERAL = (
    Option(
        "config", kinds.FILE, None, "read options from this YAML file", "General",
        takes_effect=Takes.AT_START, fixed="the agent follows the file that it was started with",
    ),
    Option(
        "node-name", kinds.NODE_NAME, None,
        "name of this node (default: $NODE_NAME, then the host name)", "General",
        takes_effect=Takes.AT_START, fixed="its cards are named after the node",
    ),
    Option(
        "vendors", kinds.VENDOR_LIST, None,
        "restrict the node to cards from these vendors, such as nvidia,mlu", "General",
    ),
    _at_start(
        "socket-dir", kinds.FOLDER, "/var/lib/kubelet/device-plugins",
        "folder of the kubelet's device-plugin sockets", "General",
    ),
    _at_start(
        "http-listen", kinds.ADDRESS, ":9396",
        "address that serves /healthz, /readyz and /metrics", "General",
    ),
    Option(
        "kubelet-version", kinds.VERSION, None,
        "Kubernetes version that `auto` and the warnings assume (default: ask the API server, "
        "else the newest)", "General",
    ),
    _at_start(
        "control-socket", kinds.SOCKET, CONTROL_SOCKET,
        "socket on which the agent serves `hami-mock ctl`", "General",
    ),
    _at_start(
        "pod-resources-socket", kinds.SOCKET, "/var/lib/kubelet/pod-resources/kubelet.sock",
        "socket on which the kubelet reports which pod holds which device", "General",
    ),
    _at_start(
        "kubernetes-events", SWITCH, False,
        "publish events on the Node object too (needs access to the API server)", "General",
    ),
    Option(
        "log-level", choice("debug", "info", "warning", "error"), "info",
        "log messages of this level and above", "General",
    ),
    _at_start("log-format", choice("text", "json"), "text", "format of log lines", "General"),
    Option(
        "hami", SWITCH, False,
        "act as HAMi's node side: write its annotations, answer its handshakes, and give pods the "
        "devices that its scheduler assigned", "HAMi",
        takes_effect=Takes.AT_START, fixed="it can rename every resource",
    ),
    _at_start(
        "hami-keep-annotations", SWITCH, False,
        "keep HAMi's annotations on the node when the agent stops", "HAMi",
    ),
    Option(
        "source", choice("flags", "hami"), "flags",
        "where the cards come from: flags, variables and the file (flags), or the annotations of a "
        "real HAMi plugin, to register the resources that it doesn't (hami)", "HAMi",
        takes_effect=Takes.AT_START, fixed="the cards would be different ones",
    ),
    Option(
        "device-config-file", kinds.FILE, None,
        "read resource names and how cards are sliced from HAMi's device-config.yaml", "HAMi",
    ),
    _at_start(
        "scenario", kinds.FILE, None,
        "play this scenario from the start (see `hami-mock scenario`)", "Faults",
    ),
    _at_start(
        "seed", SEED, None,
        "seed of the scenario's random choices (default: the one in the file)", "Faults",
    ),
    Option(
        "ignored-xids", kinds.XIDS, APPLICATION_ERRORS,
        "Xids that are counted but leave the card healthy", "Faults",
    ),
)  # fmt: skip


def _vendor_options(vendor: Vendor) -> Iterator[Option]:
    def option(name: str, kind: Kind[Any], default: Any, text: str) -> Option:
        return Option(f"{vendor.prefix}-{name}", kind, default, text, vendor.title)

    cards = "number of cards on the node; 0 registers nothing for this vendor"
    yield option("cards", kinds.CARDS, vendor.cards, cards)
    yield option("model", kinds.MODEL, vendor.model, "model of the cards (see `hami-mock models`)")
    for offer in vendor.offers:
        if offer.role is Role.MEMORY:
            yield option(
                "memory", kinds.MEMORY, None, "memory of each card in MiB (default: the model's)"
            )
            text = "multiply the memory of each card by this (oversubscription)"
            yield option("memory-scaling", kinds.SCALING, 1.0, text)
            yield option("memory-factor", kinds.FACTOR, 1, _factor_help(offer.memory_unit))
    if vendor.offers_role(Role.CORES):
        text = "multiply the compute of each card by this (oversubscription)"
        yield option("core-scaling", kinds.SCALING, 1.0, text)
    if vendor.offers_role(Role.SLOTS) and not vendor.is_whole:
        text = "slots that each card is divided into"
        text += "" if vendor.split else " (default: by HAMi's templates for the chip)"
        yield option("split", kinds.SPLIT, vendor.split, text)
    if vendor.modes:
        text = "how cards are sliced, as reported to HAMi's scheduler"
        yield option("mode", choice(*vendor.modes), vendor.modes[0], text)
    for offer in vendor.offers:
        yield Option(
            offer.flag,
            kinds.RESOURCE_NAME,
            offer.name or None,
            _name_help(offer),
            vendor.title,
            offer.flag_aliases,
        )


def _factor_help(memory_unit: int) -> str:
    unit = "MiB" if memory_unit == 1 else f"blocks of {memory_unit} MiB"
    return f"{unit} in one unit of the memory resource (auto: as few as possible)"


def _name_help(offer: Offer) -> str:
    text = f"name of the resource that counts {offer.role}"
    if offer.hami:
        text += "; registered only if you name it"
    return f"{text} (with --hami on: {offer.name_in_hami('CHIP')})" if offer.hami_name else text


OPTIONS = (*GENERAL, *(option for vendor in VENDORS for option in _vendor_options(vendor)))
BY_NAME = {name: option for option in OPTIONS for name in (option.name, *option.aliases)}

GROUP_OPTIONS = {f"{vendor.prefix}-groups": vendor for vendor in VENDORS}
"""In the file only: lists of groups, for cards of different models on one node."""

DEFAULTS = {option.name: option.default for option in OPTIONS} | dict.fromkeys(GROUP_OPTIONS)
