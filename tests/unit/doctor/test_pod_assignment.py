from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hami_mock.doctor import pod_assignment, pod_request
from hami_mock.doctor.case import PodCase
from hami_mock.doctor.finding import Finding
from tests.unit.doctor.patients import ALLOCATED, ago, assigned, node, pod, pod_case, told

Check = Callable[[PodCase], Iterator[Finding]]
ONE = {"nvidia.com/gpu": "1"}
TWO = {"nvidia.com/gpu": "2"}


def found(check: Check, *arguments: Any, **more: Any) -> list[Finding]:
    return list(check(pod_case(*arguments, **more)))


@pytest.mark.parametrize(
    "check",
    [
        pod_assignment.bind_phase,
        pod_assignment.assigned_node,
        pod_assignment.assigned_cards,
        pod_assignment.outcome,
    ],
)
def test_a_pod_that_is_well_has_no_findings(check: Check) -> None:
    assert found(check, pod(), node()) == []
    assert found(check, pod(annotations=assigned(), nodeName="n1"), node()) == []
    assert found(check, pod(annotations=assigned()), None) == []


def test_a_pod_that_the_plugin_could_not_serve() -> None:
    (finding,) = found(pod_assignment.bind_phase, pod(annotations=assigned(bind_phase="failed")))
    assert told([finding]) == [("error", "hami.io/bind-phase")]


@pytest.mark.parametrize(
    ("time", "phase", "wrong"),
    [
        (str(int(ago(seconds=90).timestamp())), "Pending", 1),
        (str(int(ago(seconds=90).timestamp())), "Running", 0),
        (str(int(ago(seconds=30).timestamp())), "Pending", 0),
        ("yesterday", "Pending", 0),
        ("9" * 40, "Pending", 0),
    ],
)
def test_a_pod_that_waits_for_its_devices(time: str, phase: str, wrong: int) -> None:
    waiting = pod(annotations=assigned(bind_time=time), status={"phase": phase})
    findings = found(pod_assignment.bind_phase, waiting)
    assert len(findings) == wrong
    assert all(finding.what.startswith("allocating for 90 s") for finding in findings)


def test_a_pod_that_is_elsewhere_than_assigned() -> None:
    moved = pod(annotations=assigned(vgpu_node="n2"), nodeName="n1")
    (finding,) = found(pod_assignment.assigned_node, moved, node())
    assert finding.severity == "error"
    assert finding.what.startswith("HAMi assigned it to n2, but it is bound to n1")
    other = pod(annotations=assigned(vgpu_node="n2"))
    (finding,) = found(pod_assignment.assigned_node, other, node())
    assert (finding.severity, finding.advice) == (
        "warning",
        "examine that one: hami-mock doctor n2",
    )


@pytest.mark.parametrize(
    ("text", "containers", "what"),
    [
        ("GPU-1,NVIDIA,1000,0:;", [ONE], None),
        ("GPU-1[0-1],NVIDIA,1000,0:;", [ONE], None),
        ("GPU-1,NVIDIA,1000,0:;", [{"cpu": "1"}, ONE], None),
        ("GPU-1,NVIDIA,1000,0:GPU-2,NVIDIA,1000,0:;;", [TWO, {"cpu": "1"}], None),
        ("GPU-9,NVIDIA,1000,0:;", [ONE], "card 'GPU-9' is no longer on the node"),
        ("GPU-1,NVIDIA,x,0:;", [ONE], "it can't be read: container 0, device 0: memory"),
        ("GPU-1,NVIDIA,1000,0:;", [ONE, ONE], "it has devices for 1 containers, and 2 ask"),
        (";", [ONE], "it has devices for 0 containers, and 1 ask for some"),
        ("GPU-1,NVIDIA,1,0:;", [TWO], "container c0 asks for 2 devices and is assigned 1"),
    ],
)
def test_assigned_cards(text: str, containers: list[dict[str, str]], what: str | None) -> None:
    findings = found(
        pod_assignment.assigned_cards, pod(*containers, annotations=assigned(text)), node()
    )
    assert told(findings) == ([("error", ALLOCATED)] if what else [])
    assert all(finding.what.startswith(what or "") for finding in findings)


def test_three_slices_of_enflames_are_one_device_of_a_card() -> None:
    capacity = '{"devices":[{"index":"0","minor":"0","capacity":6}],"profiles":{"3g.24gb":"0"}}'
    drs = "enflame.com/drs-gcu"
    on = node(annotations={"enflame.com/gcu-drs-capacity": capacity}, resources={drs: "6"})
    where = {"hami.io/vgpu-node": "n1"}
    for card, wrong in (("n1-enflame-drs-0", 0), ("n1-enflame-drs-1", 1)):
        text = f"{card},Enflame,24576,50:;"
        asked = pod(
            {drs: "3"}, annotations={"hami.io/enflame-vgpu-devices-allocated": text, **where}
        )
        examined = pod_case(asked, on)
        assert len(list(pod_assignment.assigned_cards(examined))) == wrong
        assert list(pod_request.cards_suffice(examined)) == []


def test_cards_of_another_node_can_not_be_looked_up() -> None:
    far = pod(annotations=assigned("GPU-9,NVIDIA,1000,0:;", vgpu_node="n2"))
    assert found(pod_assignment.assigned_cards, far, node()) == []


def test_what_scheduler_and_kubelet_say() -> None:
    refused = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no device"}
    (finding,) = found(pod_assignment.outcome, pod(status=refused))
    assert finding.what == "the kubelet refused it: UnexpectedAdmissionError: no device"
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    (finding,) = found(pod_assignment.outcome, pod(status={"conditions": [condition]}))
    assert (finding.severity, finding.what) == (
        "warning",
        "it isn't scheduled yet: 0/1 nodes are available",
    )
