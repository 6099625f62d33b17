"""All that a what-if tells, as one document: text and pages show it, scripts read it. Pure.

docs/whatif.md describes the keys; they stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from hami_mock.whatif.advice import advice
from hami_mock.whatif.demand import Workload
from hami_mock.whatif.fragmentation import (
    PARTS,
    Left,
    Wish,
    heat,
    left_by_pool,
    over_time,
    step_names,
)
from hami_mock.whatif.outcome import Amounts, Moment, Outcome, PoolUse, Stranded
from hami_mock.whatif.purchase import Purchase
from hami_mock.whatif.reasons import grouped, meaning_of, telling, words_of

VERSION = 1
MOST_MOMENTS = 400
"""How many points of the timeline are told: a chart has no more pixels."""
UNITS = {
    "memory": "MiB",
    "cores": "%",
    "slots": "slots",
    "mig": "slices",
    "cpu": "m",
    "ram": "bytes",
    "pods": "pods",
}


@dataclass(frozen=True)
class Asked:
    """What was to be found out: files, a seed, and the pods."""

    fleet: str
    files: Sequence[str]
    workload: Workload
    wishes: Sequence[Wish]
    seed: int | None = None
    added: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """What was found out; the first outcome is the one that the report is about."""

    outcomes: Sequence[Outcome]
    purchases: Sequence[Purchase] = ()
    judged: Mapping[str, Any] | None = None
    judged_by_hami: Mapping[str, Any] | None = None


def document(asked: Asked, answers: Answers) -> dict[str, Any]:
    """Return the whole report as plain data."""
    outcome = answers.outcomes[0]
    left = left_by_pool(outcome.cards, asked.wishes)
    return {
        "version": VERSION,
        "fleet": {
            "file": asked.fleet,
            "nodes": sum(pool.nodes for pool in outcome.pools),
            "cards": sum(pool.cards for pool in outcome.pools),
            "added": dict(asked.added),
        },
        "workload": {
            "files": list(asked.files),
            "pods": outcome.arrived,
            "notes": list(asked.workload.notes),
        },
        "rules": {
            "policy": outcome.policy,
            "scheduler": outcome.scheduler,
            "seed": asked.seed,
        },
        "answer": _answer(outcome),
        "moment": _when(outcome),
        "reasons": _reasons(outcome),
        "total": _total(outcome, left),
        "peak": _peak(outcome),
        "pools": [_pool(pool, left.get(pool.pool, Left())) for pool in outcome.pools],
        "heat": {"steps": step_names(), "cards": heat(outcome.cards)},
        "fragmentation": [
            [each.arrived, round(each.share, 4), each.time]
            for each in over_time(outcome, asked.wishes)
        ],
        "timeline": [_moment(moment) for moment in chosen(outcome.timeline)],
        "policies": [_policy(each, asked.wishes) for each in answers.outcomes],
        "purchases": [_purchase(each) for each in answers.purchases],
        "advice": advice(answers.outcomes, answers.purchases),
        "judge": answers.judged,
        "judge_hami": answers.judged_by_hami,
        "refused": list(_refused(outcome)),
        "placed": list(_placed(outcome)),
    }


def _answer(outcome: Outcome) -> dict[str, Any]:
    pods, fit = outcome.arrived, len(outcome.placements)
    waits = [each.waited for each in outcome.placements if each.waited]
    return {
        "pods": pods,
        "fit": fit,
        "refused": pods - fit,
        "share": _share(fit, pods),
        "waited": len(waits),
        "longest_wait": max(waits, default=0.0),
        "seconds": round(outcome.seconds, 3),
    }


def _when(outcome: Outcome) -> dict[str, Any]:
    """Return the moment that pools and cards are told of."""
    if outcome.fullest:
        return {"is_fullest": True, **outcome.fullest._asdict()}
    last = outcome.timeline[-1].time if outcome.timeline else 0.0
    return {
        "is_fullest": False,
        "time": last,
        "arrived": outcome.arrived,
        "running": outcome.taken.pods,
    }


def _reasons(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "reason": group.reason,
            "lacks": group.words,
            "meaning": meaning_of(group.reason),
            "pods": len(group.refusals),
            "example": {
                "pod": group.refusals[0].pod,
                "owner": group.refusals[0].owner,
                "asks": group.refusals[0].asks,
                "nodes": dict(group.refusals[0].reasons),
            },
        }
        for group in grouped(outcome.refusals)
    ]


def _total(outcome: Outcome, left: Mapping[str, Left]) -> dict[str, Any]:
    pools = outcome.pools
    counted = ("nodes", "nodes_touched", "cards", "cards_touched")
    return {
        **{key: sum(getattr(pool, key) for pool in pools) for key in counted},
        **_amounts(outcome.there, outcome.taken, reduce(Left.plus, left.values(), Left())),
        "stranded": reduce(Stranded.plus, (pool.stranded for pool in pools), Stranded())._asdict(),
    }


def _peak(outcome: Outcome) -> dict[str, float | None]:
    """Return the largest share of each resource that was ever taken."""
    there, found = outcome.there, {}
    moments = (outcome.taken, *(moment.taken for moment in outcome.timeline))
    for key in UNITS:
        most = max(getattr(taken, key) for taken in moments)
        found[key] = _share(most, getattr(there, key))
    return found


def _pool(pool: PoolUse, left: Left) -> dict[str, Any]:
    return {
        "pool": pool.pool,
        "nodes": pool.nodes,
        "nodes_touched": pool.nodes_touched,
        "cards": pool.cards,
        "cards_touched": pool.cards_touched,
        **_amounts(pool.there, pool.taken, left),
        "stranded": pool.stranded._asdict(),
    }


def _amounts(there: Amounts, taken: Amounts, left: Left) -> dict[str, Any]:
    """Return what there is of each resource, and what is left of it; of cards also how useful."""
    found: dict[str, Any] = {}
    for key, unit in UNITS.items():
        whole, own = getattr(there, key), getattr(taken, key)
        found[key] = {"unit": unit, "there": whole, "taken": own, "share": _share(own, whole)}
        if key in PARTS:
            fragmented, place = left.share(key), PARTS.index(key)
            found[key] |= {
                "fragmented": None if fragmented is None else round(fragmented, 4),
                "useless": int(left.useless[place]),
            }
    return found


def _moment(moment: Moment) -> dict[str, Any]:
    parts = {key: getattr(moment, key)._asdict() for key in ("asked", "taken", "stranded")}
    return {**moment._asdict(), **parts}


def chosen(moments: Sequence[Moment], most: int = MOST_MOMENTS) -> list[Moment]:
    """Return at most so many moments, evenly, with the first and the last."""
    if len(moments) <= most:
        return list(moments)
    return [moments[round(i * (len(moments) - 1) / (most - 1))] for i in range(most)]


def _policy(outcome: Outcome, wishes: Sequence[Wish]) -> dict[str, Any]:
    left = reduce(Left.plus, left_by_pool(outcome.cards, wishes).values(), Left())
    there, taken, fragmented = outcome.there, outcome.taken, left.share("memory")
    return {
        "policy": outcome.policy,
        "fit": len(outcome.placements),
        "refused": len(outcome.refusals),
        "nodes_touched": sum(pool.nodes_touched for pool in outcome.pools),
        "cards_touched": sum(pool.cards_touched for pool in outcome.pools),
        "memory_share": _share(taken.memory, there.memory),
        "cores_share": _share(taken.cores, there.cores),
        "memory_fragmented": None if fragmented is None else round(fragmented, 4),
        "memory_over_time": [
            [each.arrived, _share(each.taken.memory, there.memory)]
            for each in chosen(outcome.timeline, MOST_MOMENTS // 4)
        ],
    }


def _purchase(bought: Purchase) -> dict[str, Any]:
    return {
        "pool": bought.pool,
        "wanted": bought.wanted,
        "nodes": bought.best.bought,
        "fit": bought.best.fitted,
        "gained": bought.gained,
        "is_enough": bought.is_enough,
        "curve": [list(point) for point in bought.points],
    }


def _refused(outcome: Outcome) -> Iterator[dict[str, Any]]:
    for each in outcome.refusals:
        reason = telling(each)
        yield {
            "pod": each.pod,
            "owner": each.owner,
            "number": each.number,
            "arrived": each.arrived,
            "asks": each.asks,
            "reason": reason,
            "lacks": words_of(reason),
            "nodes": dict(each.reasons),
            "near": dict(each.near),
        }


def _placed(outcome: Outcome) -> Iterator[dict[str, Any]]:
    for each in outcome.placements:
        shares = [share._asdict() for share in each.cards]
        yield {**each._asdict(), "cards": shares}


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None
