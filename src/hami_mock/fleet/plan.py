"""What a fleet would make, before it makes anything. Pure."""

from typing import Any

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.fleet.nodes import models_of, node_object
from hami_mock.hami.handshake import REPORT_INTERVAL
from hami_mock.node.sizing import Node
from hami_mock.settings.pools import Pool
from hami_mock.vendors.dra import driver_of
from hami_mock.views.dra.devices import offered
from hami_mock.views.dra.slices import contents
from hami_mock.views.hami.registration import registration


def planned(fleet: Fleet) -> dict[str, Any]:
    """Return the pools, what a node of each offers, and how much is to be written."""
    pools = [_pool(fleet, pool) for pool in fleet.pools]
    reporting = sum(pool["nodes"] for pool in pools if pool["reports"])
    return {
        "fleet": fleet.name,
        "nodes": sum(pool["nodes"] for pool in pools),
        "cards": sum(pool["cards"] for pool in pools),
        "slices": sum(pool["slices"] for pool in pools),
        "reports_per_second": round(reporting / REPORT_INTERVAL.total_seconds(), 1),
        "pools": pools,
    }


def _pool(fleet: Fleet, pool: Pool) -> dict[str, Any]:
    state = fleet.state(Member(pool, 0))
    handshakes = registration(state).handshakes if pool.settings.hami else {}
    racks = {pool.rack_of(index) for index in range(pool.nodes)}
    return {
        "name": pool.name,
        "nodes": pool.nodes,
        "models": models_of(state.node),
        "mig": _mig(state.node),
        "cards": len(state.node.cards) * pool.nodes,
        "zones": list(pool.zones),
        "racks": len(racks - {""}),
        "resources": {resource.name: resource.count for resource in state.node.resources},
        "reports": sorted(key for key, style in handshakes.items() if style),
        "slices": slices_of(fleet, pool) * pool.nodes,
        "node": node_object(pool, state, fleet.name),
    }


def _mig(node: Node) -> dict[str, str]:
    """Return which models are cut into instances, and into which; "": as HAMi's scheduler wants."""
    by_hami = {
        card.model.name: ""
        for resource in node.resources
        if resource.hami and resource.hami.mode == "mig"
        for card in resource.cards
    }
    cut = {card.model.name: ",".join(card.cut) for card in node.cards if card.cut is not None}
    return by_hami | cut


def slices_of(fleet: Fleet, pool: Pool) -> int:
    """Return how many ResourceSlices a node of a pool has."""
    state, settings = fleet.state(Member(pool, 0)), pool.settings
    vendors = dict.fromkeys(card.vendor for card in state.node.cards)
    drivers = [(driver_of(vendor, p), p) for vendor in vendors for p in settings.dra]
    return sum(
        len(contents(driver, offered(driver, profile, state, settings.driver_version)))
        for driver, profile in drivers
        if driver is not None
    )
