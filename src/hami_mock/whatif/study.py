"""A question → its answers: the workload placed by each policy, and with each purchase."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hami_mock.errors import UsageError
from hami_mock.kit.similar import did_you_mean
from hami_mock.settings.pools import MOST_NODES, Pool
from hami_mock.whatif.demand import Workload
from hami_mock.whatif.outcome import Outcome
from hami_mock.whatif.policies import FleetFor, PlaceBy, compare
from hami_mock.whatif.purchase import Market, Purchase, Tell, enlarged
from hami_mock.whatif.report import Answers
from hami_mock.whatif.rules import DEFAULT_POLICIES, POLICIES, Rules, Scheduler

_LITTLE_WORK = 1_000_000
"""Pods times nodes up to which all policies and purchases are tried, also if nobody asks."""
_MOST_TRIED_POOLS = 8


@dataclass(frozen=True)
class Question:
    """What is asked: the first policy is the one to tell of, the others are compared with it.

    No policies, and None for the pools to buy for: what helps is looked for where that is quick.
    `percent` of the pods should fit.
    """

    policies: Sequence[str] = ()
    scheduler: Scheduler = Scheduler.HAMI
    added: Mapping[str, int] = field(default_factory=dict)
    buy: Sequence[str] | None = None
    percent: int = 100

    @property
    def policy(self) -> str:
        """The policy to tell of; without one, what the scheduler does by itself."""
        return next(iter(self.policies), DEFAULT_POLICIES[self.scheduler])


def answer(
    question: Question, fleet_for: FleetFor, place: PlaceBy, tell: Tell = lambda _: None
) -> Answers:
    """Place, compare and try purchases. Raises UsageError for a pool that the fleet hasn't."""

    def fleet(rules: Rules) -> tuple[Pool, ...]:
        pools = fleet_for(rules)
        check_pools(question, pools)
        return enlarged(pools, question.added)

    policies = question.policies or (question.policy,)
    rules = [Rules(policy, question.scheduler) for policy in policies]
    outcomes = compare(rules, fleet, place, tell)
    if _is_helpless(outcomes[0]) and not question.policies and _sees_cards(question):
        others = [Rules(name, question.scheduler) for name in POLICIES if name not in policies]
        outcomes += compare(others, fleet, place, tell)
    pools = fleet(rules[0])
    market = Market(pools, outcomes[0], lambda some: place(some, rules[0]), tell)
    bought = tuple(_purchases(question, market))
    return Answers(outcomes, bought)


def _is_helpless(outcome: Outcome) -> bool:
    """Say if pods don't fit, and it is quick to see what would help."""
    nodes = sum(pool.nodes for pool in outcome.pools)
    return bool(outcome.refusals) and outcome.arrived * nodes <= _LITTLE_WORK


def _sees_cards(question: Question) -> bool:
    return question.scheduler is Scheduler.HAMI


def _purchases(question: Question, market: Market) -> Iterator[Purchase]:
    pools: Sequence[str] = question.buy or ()
    if question.buy is None and _is_helpless(market.now):
        pools = [pool.name for pool in market.pools][:_MOST_TRIED_POOLS]
    wanted = -(-question.percent * market.now.arrived // 100)
    for pool in dict.fromkeys(pools):
        yield market.purchase(pool, wanted)


def check_pools(question: Question, pools: Sequence[Pool]) -> None:
    """Raise UsageError for flags that name pools which aren't there, or can't be so large."""
    sizes = {pool.name: pool.nodes for pool in pools}
    problems = [
        f"{flag}: the fleet has no pool {name!r}{did_you_mean(name, sizes)}"
        for flag, names in (("--buy", question.buy or ()), ("--add", question.added))
        for name in names
        if name not in sizes
    ]
    for name, more in question.added.items():
        if name in sizes and not 0 <= sizes[name] + more <= MOST_NODES:
            problems.append(
                f"--add: {name}={more} makes {sizes[name] + more} nodes of the pool's "
                f"{sizes[name]}: it must have from 0 to {MOST_NODES}"
            )
    if problems:
        raise UsageError(problems)


def shuffled(workload: Workload, seed: int | None) -> Workload:
    """Return the pods in another order, the same for the same seed; times and priorities stay."""
    if seed is None:
        return workload
    arrivals = list(workload.arrivals)
    random.Random(seed).shuffle(arrivals)
    return replace(workload, arrivals=tuple(arrivals))
