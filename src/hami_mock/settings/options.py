"""Every option, once: flags, variables, keys of the file, help, and when a change takes effect.

An option `nvidia-cards` is the flag --nvidia-cards, the variable HAMI_MOCK_NVIDIA_CARDS and the key
`nvidia-cards` (or `cards` under `nvidia`). What a vendor has options for follows from what its
cards offer. docs/flags.md, the JSON Schema and `hami-mock init` are made from these.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from hami_mock.hami.kinds import MIG
from hami_mock.kit.values import SEED, SWITCH, Kind, choice
from hami_mock.node.ways import Units
from hami_mock.node.xid import APPLICATION_ERRORS
from hami_mock.settings import kinds
from hami_mock.settings.places import CONTROL_SOCKET, DRIVER_ROOT
from hami_mock.vendors import VENDORS, Role, Vendor
from hami_mock.vendors.dra import Profile
from hami_mock.vendors.labelling import LabelSet

ENV_PREFIX = "HAMI_MOCK_"
TOPOLOGY_SCORE = "ENABLE_TOPOLOGY_SCORE"
"""The variable by which HAMi's chart has its plugin write scores."""


def variable(name: str) -> str:
    return ENV_PREFIX + name.replace("-", "_").upper()


class Takes(StrEnum):
    """When a change takes effect on an agent that runs."""

    AT_ONCE = "at once"
    AT_START = "at the next start"


@dataclass(frozen=True)
class Option:
    """One option. `default` None means that something else decides; `help` says what.

    For an agent that runs, a change `waits` for the next start, or can't be taken at all: `fixed`
    says why.
    """

    name: str
    kind: Kind[Any]
    default: Any
    help: str
    section: str
    aliases: tuple[str, ...] = ()
    waits: bool = False
    fixed: str = ""

    @property
    def takes_effect(self) -> Takes:
        return Takes.AT_START if self.waits or self.fixed else Takes.AT_ONCE

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
        return tuple(map(variable, (self.name, *self.aliases)))


_general = partial(Option, section="General")
_hami = partial(Option, section="HAMi")
_faults = partial(Option, section="Faults")
_load = partial(Option, section="Load")
_dra = partial(Option, section="DRA", waits=True)
_driver = partial(Option, section="Driver", waits=True)
_metrics = partial(Option, section="Metrics", waits=True)

# fmt: off
GENERAL = (
    _general("config", kinds.FILE, None, "read options from this YAML file",
             fixed="the agent follows the file that it was started with"),
    _general("node-name", kinds.NODE_NAME, None,
             "name of this node (default: $NODE_NAME, then the host name)",
             fixed="its cards are named after the node"),
    _general("vendors", kinds.VENDOR_LIST, None,
             "restrict the node to cards from these vendors, such as nvidia,mlu"),
    _general("socket-dir", kinds.FOLDER, "/var/lib/kubelet/device-plugins",
             "folder of the kubelet's device-plugin sockets", waits=True),
    _general("device-plugins", SWITCH, True,
             "register the resources with the kubelet; off: leave that to a real device plugin, "
             "which finds the cards in the driver root"),
    _general("units", choice(*Units).then(Units, str), Units.AUTO,
             "how memory, cores and percentages reach the scheduler: as devices of a plugin "
             "(plugin), as numbers in the Node's status (status; needs access to the API server), "
             "or in the status where a plugin would hurt the kubelet, and with HAMi (auto)"),
    _general("http-listen", kinds.ADDRESS, ":9396",
             "address that serves /healthz, /readyz and /metrics", waits=True),
    _general("kubelet-version", kinds.VERSION, None,
             "Kubernetes version that `auto` and the warnings assume (default: ask the API server, "
             "else 1.36, which copes with the fewest devices)"),
    _general("control-socket", kinds.SOCKET, CONTROL_SOCKET,
             "socket on which the agent serves `hami-mock ctl`", waits=True),
    _general("pod-resources-socket", kinds.SOCKET, "/var/lib/kubelet/pod-resources/kubelet.sock",
             "socket on which the kubelet reports which pod holds which device", waits=True),
    _general("kubernetes-events", SWITCH, False,
             "publish events on the Node object too (needs access to the API server)", waits=True),
    _general("pods", SWITCH, False,
             "read the annotations of this node's pods, such as how busy they keep their cards; "
             "always on with --hami on (needs access to the API server)", waits=True),
    _general("labels", kinds.LABELS, (),
             "label the Node as hardware discovery would, once the kubelet has every resource: "
             f"one or more of {', '.join(LabelSet)}, or all (without the clouds and "
             "operator-deploy)",
             waits=True),
    _general("labels-remove", SWITCH, False,
             "remove these labels from the Node when the agent stops", waits=True),
    _general("log-level", choice("debug", "info", "warning", "error"), "info",
             "log messages of this level and above"),
    _general("log-format", choice("text", "json"), "text", "format of log lines", waits=True),
    _hami("hami", SWITCH, False,
          "act as HAMi's node side: write its annotations, answer its handshakes, and give pods "
          "the devices that its scheduler assigned", fixed="it can rename every resource"),
    _hami("hami-keep-annotations", SWITCH, False,
          "keep HAMi's annotations on the node when the agent stops", waits=True),
    _hami("hami-topology-score", SWITCH, False,
          "tell HAMi's scheduler how well each pair of cards is connected, as its plugin does for "
          f"the policy topology-aware (default: on if ${TOPOLOGY_SCORE} is true)"),
    _hami("source", choice("flags", "hami"), "flags",
          "where the cards come from: flags, variables and the file (flags), or the annotations of "
          "a real HAMi plugin, to register the resources that it doesn't (hami)",
          fixed="the cards would be different ones"),
    _hami("device-config-file", kinds.FILE, None,
          "read resource names and how cards are sliced from HAMi's device-config.yaml"),
    _faults("scenario", kinds.FILE, None,
            "play this scenario from the start (see `hami-mock scenario`)", waits=True),
    _faults("seed", SEED, None,
            "seed of the random choices of scenarios and of load (default: the one in the "
            "scenario, and 0 for load)", waits=True),
    _faults("ignored-xids", kinds.XIDS, APPLICATION_ERRORS,
            "Xids that are counted but leave the card healthy"),
    _load("load", kinds.LOAD, kinds.IDLE,
          "how busy containers are if their pods don't say so in the annotation hami-mock.io/load: "
          "80, 20-60, training, inference, sine:20-80:10m, …"),
    _load("load-trace", kinds.FILES, None,
          "replay a recorded load (CSV) for containers without an annotation", waits=True),
    _load("time-factor", kinds.TIME_FACTOR, 1,
          "run the clock of loads and readings this many times as fast"),
    _driver("driver", SWITCH, False,
            "show the cards to NVML's clients too: keep a driver root up to date, and mount the "
            "library and device nodes into pods"),
    _driver("driver-root", kinds.FOLDER, DRIVER_ROOT,
            "folder of the driver root; it must have the same path on the host"),
    _driver("driver-version", kinds.DRIVER_VERSION, "580.95.05",
            "version of NVIDIA's driver to show"),
    _dra("dra", kinds.PROFILES_OF_DRA, (),
         "act as a DRA driver for the cards too, in one or more of the profiles "
         f"{', '.join(Profile)} (needs access to the API server; default: off)"),
    _dra("dra-plugins-dir", kinds.FOLDER, "/var/lib/kubelet/plugins",
         "the kubelet's plugin folder, in which the driver serves claims"),
    _dra("dra-registry-dir", kinds.FOLDER, "/var/lib/kubelet/plugins_registry",
         "the kubelet's plugin registration folder, in which it finds the driver"),
    _dra("cdi-dir", kinds.FOLDER_OR_NONE, "/var/run/cdi",
         "folder that the container runtime reads CDI specs from, for the variables and device "
         'nodes of claims; "" for a runtime without CDI'),
    _metrics("dcgm-listen", kinds.ADDRESS, "",
             "address that serves dcgm-exporter's metrics, usually :9400 (default: off)"),
    _metrics("dcgm-sharing", SWITCH, False,
             "repeat a card's metrics for each container that holds it, with the label vgpu, as "
             "dcgm-exporter does with --kubernetes-virtual-gpus"),
    _metrics("dcgm-hostname-label", choice("Hostname", "hostname"), "Hostname",
             "name of the label that holds the node's name: Hostname up to dcgm-exporter 4.8.2, "
             "hostname after it"),
    _metrics("dcgm-extras", SWITCH, False,
             "serve DCGM_EXP_* (recent Xids and clock events, health) and the fan's speed too"),
    _metrics("hami-monitor-listen", kinds.ADDRESS, "",
             "address that serves the metrics of HAMi's monitor, usually :9394 (default: off)"),
    _metrics("hami-monitor-legacy", SWITCH, False,
             "serve the monitor's metrics under their old names too"),
    _metrics("vendor-metrics-listen", kinds.ADDRESS, "",
             "address that serves the metrics of the other vendors' exporters (default: off)"),
)
# fmt: on


def _vendor_options(vendor: Vendor) -> Iterator[Option]:
    def option(name: str, kind: Kind[Any], default: Any, text: str) -> Option:
        return Option(f"{vendor.prefix}-{name}", kind, default, text, vendor.title)

    cards = "number of cards on the node; 0 registers nothing for this vendor"
    yield option("cards", kinds.CARDS, vendor.cards, cards)
    yield option("model", kinds.MODEL, vendor.model, "model of the cards (see `hami-mock models`)")
    if offer := vendor.offer(Role.MEMORY):
        text = "memory of each card in MiB (default: the model's)"
        yield option("memory", kinds.MEMORY, None, text)
        text = "multiply the memory of each card by this (oversubscription)"
        yield option("memory-scaling", kinds.SCALING, 1.0, text)
        unit = "MiB" if offer.memory_unit == 1 else f"blocks of {offer.memory_unit} MiB"
        text = f"{unit} in one unit of the memory resource (auto: as few as possible)"
        yield option("memory-factor", kinds.FACTOR, 1, text)
    if vendor.offers_role(Role.CORES):
        text = "multiply the compute of each card by this (oversubscription)"
        yield option("core-scaling", kinds.SCALING, 1.0, text)
    if vendor.offers_role(Role.SLOTS) and not vendor.is_whole:
        text = "slots that each card is divided into"
        text += "" if vendor.split else " (default: by HAMi's templates for the chip)"
        yield option("split", kinds.SPLIT, vendor.split, text)
    if vendor.modes:
        text = "how cards are sliced, as reported to HAMi's scheduler"
        text += "; mig: without scaling" if MIG in vendor.modes else ""
        yield option("mode", choice(*vendor.modes), vendor.modes[0], text)
    if vendor.cutting:
        text = "cut each card into these MIG instances ('' for MIG mode without any)"
        yield option("mig", kinds.PROFILES, None, text)
    for offer in vendor.offers:
        name, text = offer.name or None, f"name of the resource that counts {offer.role}"
        kind = kinds.RESOURCE_NAME
        if offer.role is not Role.SLOTS:
            kind, text = kinds.RESOURCE_NAME_OR_NONE, f"{text}, or '' for none"
        text += "; registered only if you name it" if offer.hami else ""
        text += f" (with --hami on: {offer.name_in_hami('CHIP')})" if offer.hami_name else ""
        yield Option(offer.flag, kind, name, text, vendor.title, offer.flag_aliases)


OPTIONS = (*GENERAL, *(option for vendor in VENDORS for option in _vendor_options(vendor)))
BY_NAME = {name: option for option in OPTIONS for name in (option.name, *option.aliases)}

_GROUPS = "cards of different models, instead of cards, model and memory"
GROUP_OPTIONS = {
    (name := f"{vendor.prefix}-groups"): Option(
        name, kinds.GROUPS, None, f"{vendor.title} {_GROUPS}", vendor.title
    )
    for vendor in VENDORS
}
"""In the file only: lists of groups, for cards of different models on one node."""

IN_FILE = BY_NAME | GROUP_OPTIONS
