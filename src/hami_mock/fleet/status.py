"""What a fleet is like now, as data: its pools, and the writes that it takes to keep them."""

from collections import Counter
from typing import Any

from hami_mock import __version__
from hami_mock.fleet.allocation import asked_for
from hami_mock.fleet.budget import Budget
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.member import Member
from hami_mock.fleet.nodes import allocatable as allocatable_of
from hami_mock.fleet.nodes import models_of
from hami_mock.node.state import Health
from hami_mock.settings.pools import Pool


def fleet_status(fleet: Fleet) -> dict[str, Any]:
    """Return the fleet's name, its pools and what is wrong with their nodes."""
    members: dict[str, list[Member]] = {pool.name: [] for pool in fleet.pools}
    for member in fleet.members.values():
        members[member.pool.name].append(member)
    return {
        "fleet": fleet.name,
        "version": __version__,
        "leaving": len(fleet.leaving),
        "pools": [_pool(fleet, pool, members[pool.name]) for pool in fleet.pools],
    }


def writes_status(budget: Budget) -> dict[str, Any]:
    """Return how much is written, and what the API server was seen to bear."""
    return {
        "per_second": round(budget.per_second, 1),
        "limit": None if budget.rate == float("inf") else budget.rate,
        "allowed": None if budget.allowed == float("inf") else round(budget.allowed, 1),
        "peak": budget.peak,
        "total": budget.written,
        "refused": budget.refused,
        "answer_ms": round(budget.answer_seconds * 1000, 1),
    }


def _pool(fleet: Fleet, pool: Pool, members: list[Member]) -> dict[str, Any]:
    whole = fleet.state(Member(pool, 0))
    resources = {resource.name: resource.count for resource in whole.node.resources}
    faulty = [member for member in members if member.faults]
    well = len(members) - len(faulty)
    allocatable = Counter({name: count * well for name, count in resources.items()})
    unhealthy = lost = degraded = 0
    for member in faulty:
        state = fleet.state(member)
        unhealthy += sum(state.health(c).health is Health.UNHEALTHY for c in state.node.cards)
        lost += len(state.lost)
        degraded += len(state.degraded)
        allocatable.update(allocatable_of(state))
    allocated = asked_for(pod for member in members for pod in (member.pods or {}).values())
    return {
        "name": pool.name,
        "nodes": len(members),
        "there": sum(member.is_there for member in members),
        "ready": sum(member.is_ready for member in members),
        "stopped": sum(member.is_stopped for member in members),
        "models": models_of(whole.node),
        "cards": len(whole.node.cards) * len(members),
        "unhealthy": unhealthy,
        "lost": lost,
        "degraded": degraded,
        "faults": sum(len(member.faults) for member in members),
        "faulty_nodes": len(faulty),
        "pods": sum(len(member.pods or ()) for member in members),
        "resources": {
            name: {"allocatable": allocatable[name], "allocated": allocated[name]}
            for name in resources
        },
    }
