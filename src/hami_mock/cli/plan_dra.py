"""What `hami-mock plan` shows of DRA: drivers, their devices, and the gates that these need."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hami_mock.kit.terminal import table
from hami_mock.kubelet.dra_gates import CONSUMABLE, GATES, PARTITIONABLE, VERSIONS
from hami_mock.kubelet.limits import Version
from hami_mock.node.advice import dra_warnings
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings
from hami_mock.vendors.dra import DraDriver, driver_of
from hami_mock.views.dra.devices import Offered, Pool
from hami_mock.views.dra.slices import contents

Data = Mapping[str, Any]

_SHOWN = 3
"""How many devices of a driver are named in the table."""


def dra_data(settings: Settings, node: Node, version: Version | None) -> dict[str, Any] | None:
    """Return what would be published, if anything would; the gates are those that it needs."""
    if not settings.dra:
        return None
    pools = _pools(settings, NodeState(node))
    offered = [each for pool in pools for each in pool.devices.values()]
    needs = {
        CONSUMABLE: any(each.device.is_shared for each in offered),
        PARTITIONABLE: any(each.device.consumes for each in offered),
    }
    versions = [version] if version else [*VERSIONS]
    return {
        "drivers": [_driver(pool) for pool in pools],
        "gates": [
            {
                "gate": name,
                "use": gate.use,
                "defaults": {_text(each): gate.default(each) for each in versions},
            }
            for name, gate in GATES.items()
            if needs.get(name, True)
        ],
        "warnings": dra_warnings(node, settings.dra),
    }


def _pools(settings: Settings, state: NodeState) -> list[Pool]:
    pools: dict[DraDriver, Pool] = {}
    for card in state.node.cards:
        for profile in settings.dra:
            driver = driver_of(card.vendor, profile)
            if driver is not None and driver not in pools:
                pools[driver] = Pool(driver, profile, state, settings.driver_version)
    return [*pools.values()]


def _driver(pool: Pool) -> dict[str, Any]:
    offered = [*pool.devices.values()]
    made = contents(pool.driver, offered)
    capacities = {
        device["name"]: {name: each["value"] for name, each in device.get("capacity", {}).items()}
        for one in made
        for device in one.get("devices", ())
    }
    devices: list[dict[str, Any]] = [
        {
            "name": each.device.name,
            "card": each.card.name,
            "classes": _classes(pool.driver, each),
            "shared": each.device.is_shared,
            "capacity": capacities[each.device.name],
        }
        for each in offered
    ]
    return {
        "driver": pool.driver.name,
        "classes": [*dict.fromkeys(name for each in devices for name in each["classes"])],
        "slices": len(made),
        "devices": devices,
    }


def _classes(driver: DraDriver, each: Offered) -> list[str]:
    return [*driver.classes(each.device.attributes)]


def dra_lines(dra: Data) -> Iterator[str]:
    """Yield the tables; nothing where no driver has a card."""
    if not dra["drivers"]:
        yield "no DRA driver has a card"
        return
    drivers = [
        (each["driver"], len(each["devices"]), each["slices"], _named(each["devices"]))
        for each in dra["drivers"]
    ]
    yield from table(("DRA DRIVER", "DEVICES", "SLICES", "NAMES"), drivers, " rr")
    of_class = Counter(
        name for each in dra["drivers"] for one in each["devices"] for name in one["classes"]
    )
    yield ""
    yield from table(("DEVICE CLASS", "DEVICES"), of_class.items(), " r")
    versions = [*dra["gates"][0]["defaults"]] if dra["gates"] else []
    gates = [(each["gate"], *each["defaults"].values(), each["use"]) for each in dra["gates"]]
    yield ""
    yield from table(("FEATURE GATE", *versions, "WHAT IT IS FOR"), gates)


def _named(devices: Sequence[Data]) -> str:
    names = [each["name"] for each in devices]
    left = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {left} more" if left > 0 else "")


def _text(version: Version) -> str:
    return ".".join(map(str, version))
