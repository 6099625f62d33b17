"""What would help pods that don't fit: a purchase, another policy, other requests. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from hami_mock.whatif.outcome import Outcome
from hami_mock.whatif.purchase import Purchase, cheapest

_WORTH_TELLING = 0.05
"""A share of the fleet's card memory that is stranded, from which on that is worth a line."""

_LOST = {
    "cores": (
        "memory_without_cores",
        "cards without free cores",
        "let pods ask for fewer cores",
    ),
    "slots": ("memory_without_slots", "cards without free slots", "split cards into more slots"),
    "full": (
        "memory_without_node",
        "nodes without CPU, memory or room for a pod",
        "let pods ask for less of these, or give the nodes more",
    ),
}
"""Card memory that nobody can have, by what it lacks, and what would help."""


def advice(outcomes: Sequence[Outcome], purchases: Sequence[Purchase]) -> list[dict[str, Any]]:
    """Return what would help, the most useful first; nothing where all pods fit."""
    if not outcomes[0].refusals:
        return []
    return [
        *_purchases(outcomes[0], purchases),
        *_policies(outcomes),
        *_stranded(outcomes[0]),
    ]


def _purchases(outcome: Outcome, purchases: Sequence[Purchase]) -> Iterator[dict[str, Any]]:
    best = cheapest(purchases)
    if in_vain := [each.pool for each in purchases if not each.is_enough and best is None]:
        pools = " or ".join(in_vain)
        text = f"More nodes of {pools} don't help any pod that doesn't fit."
        yield {"kind": "none", "text": text}
    helpful = [each for each in purchases if each.gained > 0]
    for bought in sorted(helpful, key=lambda each: each is not best):
        nodes, pool, fit = bought.best.bought, bought.pool, bought.best.fitted
        if bought.is_enough:
            whom = "all pods fit" if fit == outcome.arrived else f"{fit} pods fit, which is enough"
        else:
            others = outcome.arrived - fit
            never = "1 never fits" if others == 1 else f"{others} never fit"
            whom = f"{bought.gained} more fit; the other {never} there"
        text = f"{_nodes(nodes)} of {pool}: {whom}."
        yield {"kind": "buy", "pool": pool, "nodes": nodes, "gained": bought.gained, "text": text}


def _nodes(count: int) -> str:
    return "Buy 1 more node" if count == 1 else f"Buy {count} more nodes"


def _policies(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    first, *others = outcomes
    for other in sorted(others, key=lambda each: -len(each.placements)):
        gained = len(other.placements) - len(first.placements)
        if gained > 0:
            text = f"Use the policy {other.policy}: {gained} more fit, and nothing is bought."
            yield {"kind": "policy", "policy": other.policy, "gained": gained, "text": text}


def _stranded(outcome: Outcome) -> Iterator[dict[str, Any]]:
    parts = [pool.stranded for pool in outcome.pools]
    there = outcome.there
    for what, (key, where, mend) in _LOST.items():
        memory = sum(getattr(each, key) for each in parts)
        if there.memory and memory / there.memory >= _WORTH_TELLING:
            share = f"{memory / there.memory:.0%}".replace("%", " %")
            text = f"{share} of the card memory is free on {where}: {mend}."
            yield {"kind": what, "memory": memory, "text": text}
    idle = sum(each.cards_without_node for each in parts)
    cards = sum(pool.cards for pool in outcome.pools)
    if cards and idle / cards >= _WORTH_TELLING:
        cards_are = "1 card is" if idle == 1 else f"{idle} cards are"
        text = f"{cards_are} untouched on nodes without CPU, memory or room for a pod."
        yield {"kind": "nodes", "cards": idle, "text": text}
