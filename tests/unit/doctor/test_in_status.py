"""Units in the Node's status, as the doctor sees them."""

import json
from typing import Any

import pytest

from hami_mock.doctor import counts, in_status, pod_request
from hami_mock.doctor.case import NodeCase
from hami_mock.doctor.examine import examine_node, examine_pod
from hami_mock.doctor.finding import Finding
from hami_mock.views.status_note import ANNOTATION
from tests.unit.doctor.patients import CARDS, NOW, card, case, node, pod, pod_case, told

MEMORY, CORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
NOTED: dict[str, int | None] = {MEMORY: 65536, CORES: 200, f"{MEMORY}-percentage": 200}
AGENT = {"app.kubernetes.io/name": "hami-mock"}


def noting(*cards: dict[str, Any], note: dict[str, int | None] | None = None, **more: Any) -> Any:
    text = json.dumps(NOTED if note is None else note)
    return node(*cards, annotations={ANNOTATION: text}, **more)


def agent(**more: Any) -> dict[str, Any]:
    return pod({}, name="hami-mock-x", labels=AGENT, status={"phase": "Running"}, **more)


def newest(document: dict[str, Any]) -> dict[str, Any]:
    document["status"]["nodeInfo"]["kubeletVersion"] = "v1.37.1"
    return document


def test_a_node_that_is_well_says_what_stands_in_its_status() -> None:
    findings = examine_node(case(noting(), [agent(nodeName="n1")]))
    assert told(findings) == [("ok", "NVIDIA"), ("ok", "Node's status")]
    assert findings[1].what == f"65536 {MEMORY}, 200 {CORES}, 200 {MEMORY}-percentage"


def test_many_of_them_are_counted() -> None:
    many: dict[str, int | None] = {f"a.b/r{i}": 1 for i in range(9)}
    there = dict.fromkeys(many, "1")
    (finding,) = in_status.as_noted(case(noting(note=many, resources=there)))
    assert finding.what.endswith("1 a.b/r5 and 3 more")


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({"resources": {MEMORY: "0"}}, "capacity is 0 and allocatable is 0"),
        ({"resources": {MEMORY: None}}, "capacity is 0 and allocatable is 0"),
        ({"allocatable": {MEMORY: "5"}}, "capacity is 65536 and allocatable is 5"),
        ({"resources": {MEMORY: "99999"}}, "capacity is 99999 and allocatable is 99999"),
    ],
    ids=["zeroed", "removed", "allocatable", "more"],
)
def test_what_somebody_has_reset_and_nobody_puts_right(
    changes: dict[str, Any], numbers: str
) -> None:
    findings = examine_node(case(noting(**changes), [agent(nodeName="n1")]))
    (finding,) = (
        each for each in findings if (str(each.severity), each.where) == ("error", MEMORY)
    )
    assert f"wrote 65536 into the node's status, but {numbers}" in finding.what
    assert "hami-mock ctl status" in finding.advice


def test_what_waits_for_the_kubelet_is_a_warning_with_the_time() -> None:
    waiting = noting(note={**NOTED, MEMORY: None}, allocatable={MEMORY: "0"})
    findings = examine_node(case(waiting, [agent(nodeName="n1")]))
    assert [each for each in told(findings) if each[0] != "ok"] == [("warning", MEMORY)]
    (finding,) = (each for each in findings if each.where == MEMORY)
    assert "capacity (65536), but not in allocatable (0)" in finding.what
    assert "5 minutes" in finding.advice


def left(pods: list[dict[str, Any]] | None, **more: Any) -> list[Finding]:
    return [*in_status.kept(case(noting(**more), pods))]


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [agent(nodeName="n2")],
        [agent(nodeName="n1") | {"status": {"phase": "Failed"}}],
        [pod({}, labels={"app": "hami-mock"}, nodeName="n1")],
    ],
    ids=["no pods", "on another node", "it has ended", "other pods"],
)
def test_what_a_dead_agent_has_left_can_be_removed_by_the_command_given(
    pods: list[dict[str, Any]],
) -> None:
    (finding,) = left(pods)
    assert told([finding]) == [("warning", ANNOTATION)]
    assert MEMORY in finding.what
    command, _, text = finding.advice.partition(" -p ")
    assert command.endswith("kubectl patch node n1 --subresource=status --type=merge")
    patch = json.loads(text.strip("'"))
    assert patch["metadata"]["annotations"] == {ANNOTATION: None}
    assert patch["status"] == {part: dict.fromkeys(NOTED) for part in ("capacity", "allocatable")}


def test_where_the_agent_runs_or_nobody_knows_nothing_is_left() -> None:
    assert left([agent(nodeName="n1")]) == []
    assert left(None) == []
    assert [*in_status.kept(case(node(), []))] == []


REFUSAL = "can't patch nodes/status n1: no (403); the role needs the verb patch for nodes/status"


@pytest.mark.parametrize(("version", "severity"), [("v1.35.8", "note"), ("v1.37.1", "warning")])
def test_what_the_role_lacks_is_named(version: str, severity: str) -> None:
    document = node()
    document["status"]["nodeInfo"]["kubeletVersion"] = version
    (finding,) = in_status.may_write(NodeCase(document, NOW, refusal=REFUSAL))
    assert told([finding]) == [(severity, "nodes/status")]
    assert REFUSAL in finding.what
    rule = "the verb patch of nodes/status, get and watch of nodes, and list and watch of pods"
    assert rule in finding.advice


def test_who_may_write_or_has_is_not_told_so() -> None:
    assert [*in_status.may_write(case(node()))] == []
    assert [*in_status.may_write(NodeCase(noting(), NOW, refusal=REFUSAL))] == []


def checked(document: dict[str, Any]) -> list[tuple[str, str]]:
    examined = case(document)
    checks = (counts.not_zero, counts.memory_number, counts.too_many)
    return told([f for seen in examined.vendors for check in checks for f in check(examined, seen)])


def test_what_stands_in_the_status_is_no_device() -> None:
    assert checked(newest(node())) == [("warning", MEMORY)]
    assert checked(newest(noting())) == []


def test_zeros_are_told_once() -> None:
    zeros = dict.fromkeys(NOTED, "0")
    assert checked(noting(resources=zeros)) == []
    errors = [
        each for each in told(examine_node(case(noting(resources=zeros)))) if "ok" not in each
    ]
    assert errors == [("error", name) for name in NOTED]


@pytest.mark.parametrize("capacity", [32768, 40000, 65536])
def test_a_failed_card_may_lack_in_the_status(capacity: int) -> None:
    cards = (card("GPU-1", health=False), card("GPU-2", index=1))
    note: dict[str, int | None] = {MEMORY: capacity}
    assert checked(noting(*cards, note=note, resources={MEMORY: str(capacity)})) == []
    assert checked(node(*cards, resources={MEMORY: "32768"})) == [("warning", MEMORY)]


def test_other_numbers_are_told_there_too() -> None:
    for capacity in (32767, 65537):
        note: dict[str, int | None] = {MEMORY: capacity}
        document = noting(*CARDS, note=note, resources={MEMORY: str(capacity)})
        assert checked(document) == [("warning", MEMORY)]


def test_a_pod_that_asks_for_more_than_is_left_gets_the_numbers() -> None:
    waiting = pod({"nvidia.com/gpu": "1", MEMORY: "40000"}, schedulerName="")
    other = pod({"nvidia.com/gpu": "1", MEMORY: "30000"}, name="other", nodeName="n1")
    findings = examine_pod(pod_case(waiting, noting(), [other]))
    (finding,) = (each for each in findings if each.where == MEMORY)
    assert finding.what == (
        "the pod asks for 40000; node n1 has 65536 allocatable, and other pods hold 30000"
    )


def test_a_pod_that_waits_for_the_kubelet_is_told_so() -> None:
    document = noting(note={**NOTED, MEMORY: None}, allocatable={MEMORY: "0"})
    waiting = pod({"nvidia.com/gpu": "1", MEMORY: "5"})
    (finding,) = pod_request.node_suffices(pod_case(waiting, document))
    assert "has 0 allocatable" in finding.what
    assert "until the kubelet lets go of it" in finding.advice


def test_a_pod_may_ask_for_any_number_of_what_is_no_device() -> None:
    large = pod({"nvidia.com/gpu": "1", MEMORY: "1500000"})
    there = {MEMORY: "1572864"}
    note: dict[str, int | None] = {MEMORY: 1572864}
    devices = pod_case(large, newest(node(resources=there)))
    counted = pod_case(large, newest(noting(note=note, resources=there)))
    assert [f.where for f in pod_request.units(devices)] == ["pod default/p1"]
    assert [*pod_request.units(counted)] == []
