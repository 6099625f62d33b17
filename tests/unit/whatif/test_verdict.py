"""The judge finds what differs from real decisions, and says with which pod it begins."""

from pathlib import Path

from hami_mock.whatif.cluster_model import cluster_of
from hami_mock.whatif.demand import Container, Match, PodKind, Toleration
from hami_mock.whatif.manifests import pod_manifest
from hami_mock.whatif.placer import in_order
from hami_mock.whatif.placing import Placing
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.verdict import Decision, Difference, Verdict, compare, reasons_of
from tests.unit.whatif.fleets import arrivals, fleet, node_share, pod


def _judged(folder: Path, *decisions: Decision) -> Verdict:
    pools = fleet(folder, "name: a, nodes: 2, cpu: 4, nvidia: {cards: 0}")
    work = arrivals(*[pod(node_share(3000, 1))] * len(decisions))
    kinds = (each.kind for each in work.arrivals)
    placing = Placing(cluster_of(pools), kinds, Rules.of("binpack", "kube"))
    return compare(placing, in_order(work, placing), decisions)


_FULL = {"Insufficient cpu": 2}


def test_chance_is_no_difference(tmp_path: Path) -> None:
    verdict = _judged(tmp_path, Decision("a-1", {}), Decision("a-0", {}), Decision("", _FULL))
    assert verdict == Verdict(3, 2, 1, ())


def test_room_that_the_placer_sees_is_a_difference(tmp_path: Path) -> None:
    verdict = _judged(tmp_path, Decision("", _FULL))
    assert verdict.unlike == (Difference("p0", "nowhere", "a-0, a-1", "the placer sees room"),)


def test_no_room_is_a_difference(tmp_path: Path) -> None:
    verdict = _judged(tmp_path, Decision("a-0", {}), Decision("a-0", {}))
    assert verdict.unlike == (
        Difference("p1", "a-0", "a-1", "the placer sees no room on that node"),
    )


def test_other_reasons_are_a_difference(tmp_path: Path) -> None:
    decisions = (Decision("a-0", {}), Decision("a-1", {}), Decision("", {"Too many pods": 2}))
    (difference,) = _judged(tmp_path, *decisions).unlike
    assert difference == Difference("p2", "2 Too many pods", "2 Insufficient cpu", "other reasons")


def test_reasons_are_read_from_the_message() -> None:
    message = (
        "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s). "
        "preemption: 0/5 nodes are available."
    )
    assert reasons_of(message) == {
        "Insufficient cpu": 2,
        "node(s) had untolerated taint(s)": 3,
    }


def test_a_manifest_says_what_the_placer_knows() -> None:
    kind = PodKind(
        (Container({"cpu": 500, "a.b/c": 2}), Container({"cpu": 1}, True, True)),
        selector={"x": "y"},
        terms=((Match("k", "In", ("v",)),),),
        tolerations=(Toleration("t", "v", "NoSchedule"),),
    )
    spec = pod_manifest("p", kind, "ns", only="n")["spec"]
    resources = {"requests": {"cpu": "500m", "a.b/c": "2"}, "limits": {"a.b/c": "2"}}
    assert spec["containers"][0]["resources"] == resources
    assert spec["initContainers"][0]["restartPolicy"] == "Always"
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"] == [{"key": "k", "operator": "In", "values": ["v"]}]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
    assert spec["tolerations"][0]["operator"] == "Equal"
