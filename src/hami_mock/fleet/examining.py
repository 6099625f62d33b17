"""What is wrong with a fleet, its API server or what plays its nodes. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hami_mock.doctor.finding import Finding, Severity, error, note, warning
from hami_mock.faults.targets import listed
from hami_mock.hami.handshake import REPORT_INTERVAL
from hami_mock.kit import durations

_SLOW_SECONDS = 0.25
_FEWEST_SCORED = 100
"""kube-scheduler looks at all nodes where there are no more."""
_HAMI_REQUESTS = 10
"""What HAMi's scheduler asks the API server for each node in its first pass, one by one."""
_HAMI_QPS = 5.0
"""Its --kube-qps, if nobody sets it."""
_LONG_SECONDS = 60.0


@dataclass(frozen=True)
class Facts:
    """What was seen of a fleet.

    - silent: nodes that never had a Ready condition: nobody plays them
    - not_ready: nodes that had one and aren't ready now, though nobody has stopped them
    - lease_ages: for some of these, how old their leases are and how long they hold, in seconds
    - changed: nodes that differ from what the file says, and in what
    - answer_seconds: how long the API server took for a small question, at the middle of several
    - status: what the fleet's own process says; None: there is none
    - hami: the arguments of HAMi's scheduler; None: it wasn't found
    """

    nodes: int = 0
    stopped: int = 0
    silent: Sequence[str] = ()
    not_ready: Sequence[str] = ()
    lease_ages: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    changed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    answer_seconds: float = 0.0
    status: Mapping[str, Any] | None = None
    hami: Sequence[str] | None = None


def examine(facts: Facts) -> list[Finding]:
    """Return what is wrong, or that nothing is."""
    if not facts.nodes:
        advice = "create some with `hami-mock fleet up FILE`, or give the --name of another fleet"
        return [error("nodes", "the API server has no nodes of this fleet", advice)]
    found = [
        *_not_ready(facts),
        *_changed(facts),
        *_server(facts),
        *_process(facts),
        *_scheduler(facts),
        *_hami(facts),
    ]
    if all(each.severity is Severity.NOTE for each in found):
        ready = facts.nodes - facts.stopped
        found.insert(0, Finding(Severity.OK, "nodes", f"{ready} are ready"))
    return found


def sampled(nodes: int) -> int:
    """Return how many nodes kube-scheduler looks at for a pod, if nobody tells it otherwise."""
    percentage = max(5, 50 - nodes // 125)
    return nodes if nodes <= _FEWEST_SCORED else max(_FEWEST_SCORED, nodes * percentage // 100)


def _not_ready(facts: Facts) -> Iterator[Finding]:
    if facts.silent:
        yield error(
            "KWOK",
            f"{len(facts.silent)} nodes were never ready because KWOK doesn't manage them: "
            f"{listed(facts.silent)}",
            "start KWOK with --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake (or "
            "--manage-all-nodes); if it runs like that, see its log",
        )
    old = [name for name, (age, holds) in facts.lease_ages.items() if age > holds]
    if old:
        age, holds = facts.lease_ages[old[0]]
        yield error(
            "leases",
            f"{len(facts.not_ready)} nodes aren't ready because their leases have expired: that of "
            f"{old[0]} was renewed {durations.about(age)} ago and lasts {durations.about(holds)}",
            "KWOK can't keep up, or has stopped: give it nodeLeaseDurationSeconds: 400, and the "
            "controller manager --node-monitor-grace-period=900s",
        )
    elif facts.not_ready:
        yield error(
            "nodes",
            f"{len(facts.not_ready)} aren't ready: {listed(facts.not_ready)}",
            "see their conditions with kubectl describe node; if KWOK is running, it makes them "
            "ready within seconds; the controller manager's grace period may also be too short: "
            "set it to 900s",
        )


def _changed(facts: Facts) -> Iterator[Finding]:
    disputes = _part(facts, "nodes").get("disputes", ())
    if disputes:
        yield warning(
            "nodes",
            f"something else changes {len(disputes)} of the fleet's nodes: {listed(disputes)}",
            "find out what with kubectl get node NAME -o yaml --show-managed-fields; device "
            "plugins, other fleets and autoscalers must leave these nodes alone",
        )
    if facts.changed:
        name, keys = next(iter(facts.changed.items()))
        yield warning(
            "nodes",
            f"{len(facts.changed)} differ from the file: {name}: {listed(keys)}",
            "`hami-mock fleet up FILE` corrects them, and keeps them correct",
        )
    for name, problem in _part(facts, "nodes").get("problems", {}).items():
        yield error(name, problem, "give the pool another name, or delete what is in the way")


def _server(facts: Facts) -> Iterator[Finding]:
    writes = (facts.status or {}).get("writes", {})
    if facts.answer_seconds > _SLOW_SECONDS:
        yield warning(
            "API server",
            f"it takes {facts.answer_seconds * 1000:.0f} ms to answer a small request",
            "give it more CPU, or write less: fewer nodes of vendors that report, lower --writes",
        )
    if writes.get("refused"):
        yield warning(
            "API server",
            f"it refused or delayed writes {writes['refused']} times; now {writes['allowed']:g} a "
            "second are allowed",
            "give `fleet up` a smaller --writes, or the API server more with "
            "--max-mutating-requests-inflight, or a FlowSchema with the level exempt",
        )


def _process(facts: Facts) -> Iterator[Finding]:
    if facts.status is None:
        yield note(
            "process",
            "no process of the fleet runs here: nothing corrects its nodes, ends their faults or "
            "reports to HAMi",
            "start one with `hami-mock fleet up FILE`; it takes over the nodes that exist",
        )
        return
    for name, reason in facts.status.get("failures", {}).items():
        yield error(name, reason, "see the log of `hami-mock fleet up`")
    part = _part(facts, "handshakes")
    late = part.get("round_seconds", 0.0)
    if late > 2 * REPORT_INTERVAL.total_seconds():
        yield warning(
            "handshakes",
            f"{part['nodes']} nodes should report every half minute, but take {late:.0f} s",
            f"give `fleet up` more --writes: these alone need {part['per_second']:g} a second",
        )


def _scheduler(facts: Facts) -> Iterator[Finding]:
    seen = sampled(facts.nodes)
    if seen < facts.nodes:
        yield note(
            "kube-scheduler",
            f"by default it looks at {seen} of {facts.nodes} nodes for a pod, and passes no others "
            "to HAMi's scheduler: a pod that only a few nodes can take may stay Pending although "
            "there is room",
            "set percentageOfNodesToScore: 100 in its configuration (HAMi's chart doesn't)",
        )


def _hami(facts: Facts) -> Iterator[Finding]:
    if facts.hami is None:
        return
    qps = next((q for word in facts.hami if (q := _qps(word))), _HAMI_QPS)
    seconds = facts.nodes * _HAMI_REQUESTS / qps
    if seconds > _LONG_SECONDS:
        yield warning(
            "HAMi's scheduler",
            f"with --kube-qps {qps:g} its first pass over {facts.nodes} nodes takes about "
            f"{durations.about(seconds)}; until then no pod is placed, though /readyz says 200",
            "start it with --kube-qps=1000 --kube-burst=2000",
        )


def _qps(word: str) -> float | None:
    found = re.fullmatch(r"--?kube-qps[= ]([0-9]+(?:\.[0-9]+)?)", word)
    return float(found[1]) if found else None


def _part(facts: Facts, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (facts.status or {}).get("parts", {}).get(name) or {}
    return found
