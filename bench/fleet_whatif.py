"""How long the placer takes for a workload like openb, beside its target."""

import time

from bench.progress import say
from bench.report import Figure, Section
from bench.whatif import PODS, TARGET_SECONDS, fleet, workload
from hami_mock.whatif.placer import place
from hami_mock.whatif.rules import Rules

_POLICIES = ("binpack", "spread", "topology", "hami")


def whatif_figures() -> Section:
    """Place all pods with each policy."""
    pods, figures = workload(), []
    for policy in _POLICIES:
        say(f"what-if: {PODS:,} pods by {policy}")
        pools, rules = fleet(policy), Rules.of(policy)
        before = time.process_time()
        outcome = place(pools, pods, rules, has_ends=False)
        cpu = time.process_time() - before
        placed = 100 * len(outcome.placements) / outcome.arrived
        figures += [
            Figure(f"{policy}: our CPU", cpu, "s", TARGET_SECONDS),
            Figure(f"{policy}: placed", placed, "%"),
        ]
    return Section(f"What-if: {PODS:,} pods like openb's on 1,213 nodes", figures)
