"""What `hami-mock smi` knows of the cards: from the running agent or, without one, the settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio

from hami_mock.cli.ctl.client import ask
from hami_mock.control.protocol import FLAG, Request
from hami_mock.control.status import status
from hami_mock.errors import StartError
from hami_mock.node.physics import idle_reading
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.node.xid import loses_card
from hami_mock.settings.settings import Settings
from hami_mock.sources import planning
from hami_mock.vendors import VENDORS, Vendor, catalog
from hami_mock.views.driver.card_records import pid_of

_BY_PREFIX = {vendor.prefix: vendor for vendor in VENDORS}
_READ = (
    "busy", "memory_busy", "memory_used", "memory_reserved", "memory_free", "power", "power_limit",
    "temperature", "memory_temperature", "fan", "sm_clock", "memory_clock", "ecc_errors",
)  # fmt: skip
"""What a card shows; a lost one shows nothing."""
_OF_PARTS = ("busy", "memory_busy")
"""What a card doesn't show that is cut into parts."""


class NoAgent(StartError):
    """Nobody listens on the control socket."""


@dataclass(frozen=True)
class ShownCard:
    """A card with its values by name, the programs on it, and the parts that were cut out of it."""

    vendor: Vendor
    values: Mapping[str, Any]
    processes: Sequence[Mapping[str, Any]] = ()
    instances: Sequence[Mapping[str, Any]] = ()

    @property
    def name(self) -> str:
        return str(self.values["card"])


@dataclass(frozen=True)
class ShownNode:
    """The cards, and what is the same for all of them."""

    cards: Sequence[ShownCard]
    values: Mapping[str, Any] = field(default_factory=dict)


def of_agent(path: str) -> ShownNode:
    """Ask the agent. Raises NoAgent if there is none, another StartError if it doesn't answer."""
    try:
        answer = next(ask(path, Request("status")))
    except StartError as error:
        if isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError):
            raise NoAgent(str(error)) from error
        raise
    if "driver_version" not in answer:
        raise StartError(f"{FLAG}: the agent at {path!r} is older than this program: update it")
    return _shown(answer)


def of_settings(settings: Settings) -> ShownNode:
    """Return the cards that the settings say, as they are when nobody uses them."""
    cards = anyio.run(planning.cards, settings)
    state = NodeState(Node(settings.node_name, cards, ()))
    state.readings = {card.uuid: idle_reading(card) for card in cards}
    return _shown({**status(state, ()), "driver_version": settings.driver_version})


def _shown(answer: Mapping[str, Any]) -> ShownNode:
    node = {
        "node": answer["node"],
        "driver_version": answer["driver_version"],
        "time": datetime.now().astimezone(),
    }
    return ShownNode([_card(card, node) for card in answer["cards"]], node)


def _card(card: Mapping[str, Any], node: Mapping[str, Any]) -> ShownCard:
    prefix, _, index = card["name"].rpartition("/")
    vendor = _BY_PREFIX[prefix]
    model = catalog.find(vendor.maker, card["model"])
    health = _health(card)
    reading = {} if health == "lost" else card["reading"] or {}
    read = {name: reading.get(name) for name in _READ}
    used, cut = read["memory_used"], card["cut"]
    processes = _processes(card["holders"])
    can_be_cut = model and vendor.cutting and vendor.cutting().profiles(model)
    values = {
        **node,
        "driver_version": vendor.driver_version(node["driver_version"]),
        "card": card["name"],
        "vendor": prefix,
        "index": int(index),
        "name": card["product"],
        "model": card["model"],
        "family": model.family if model else "",
        "uuid": card["uuid"],
        "bus": card["pci_bus_id"],
        "short_bus": card["pci_bus_id"][4:],
        "serial": card["serial"],
        "minor": card["minor"],
        "numa": card["numa"],
        "health": health,
        "reasons": card["reasons"],
        "memory_total": card["memory"],
        "memory_percent": None if used is None else 100 * used / card["memory"],
        **read,
        **(dict.fromkeys(_OF_PARTS) if cut is not None else {}),
        "is_cut": cut is not None if can_be_cut or cut else None,
    }
    instances = [
        {
            "number": number,
            "instance": each["uuid"],
            "profile": each["profile"],
            "gi": each["gpu_instance"],
            "ci": each["compute_instance"],
            "instance_memory": each["memory"],
            "instance_used": each["memory_used"],
            "instance_busy": each["busy"],
        }
        for number, each in enumerate(cut or ())
    ]
    return ShownCard(vendor, values, processes, instances)


def _health(card: Mapping[str, Any]) -> str:
    """Return how the maker's tool finds a card: it asks the driver, which may not reach it."""
    if card["health"] == "unhealthy" and any(map(loses_card, card["reasons"])):
        return "lost"
    return "degraded" if card["degraded"] and card["health"] == "healthy" else str(card["health"])


def _processes(holders: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a program for each container, with the PID that the driver gives it too."""
    taken: set[int] = set()
    found = []
    for held in holders:
        if held["container"] is None:
            continue  # The kubelet hasn't said yet for whom it is.
        name = f"{held['namespace']}/{held['pod']}/{held['container']}"
        first: Mapping[str, Any] = next(iter(held["instances"]), {})
        found.append({
            "pid": pid_of(name, taken),
            "process": name,
            "process_memory": held["load"]["memory"],
            "gi": first.get("gpu_instance"),
            "ci": first.get("compute_instance"),
        })  # fmt: skip
    return found
