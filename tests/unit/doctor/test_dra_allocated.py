"""What the doctor finds in claims that have their devices."""

from typing import Any

from hami_mock.doctor.examine import examine_pod
from hami_mock.doctor.finding import Finding
from hami_mock.faults.actions import Action, perform
from tests.unit.builders import NODE
from tests.unit.doctor.dra_patients import (
    Document,
    claim,
    found,
    held,
    node,
    pod,
    pod_case,
    request,
    slices,
)
from tests.unit.doctor.patients import told
from tests.unit.views.dra import rig

WHERE = "claim default/mine"
OWN = held("hami-gpu-0", "mine", memory="30Gi", cores="30")


def examined(*documents: Document, own: Document | None = None, **more: Any) -> list[Finding]:
    there = found(*documents, *more.pop("made", slices()))
    return examine_pod(pod_case(own or pod(), there, more.pop("on", node())))


def test_a_claim_with_its_devices_is_no_finding() -> None:
    assert examined(OWN) == []
    assert examined(OWN, own=pod(nodeName=NODE)) == []


def test_a_claim_on_another_node_than_its_pod() -> None:
    (finding,) = examined(OWN, own=pod(nodeName="other"), on=node("other"))
    assert told([finding]) == [("error", WHERE)]
    assert f"its devices are on node {NODE}, and the pod is for other" in finding.what


def test_a_pod_that_is_nowhere_yet_must_follow_its_claim() -> None:
    (finding,) = examined(OWN, on=None)
    assert told([finding]) == [("note", WHERE)]


def test_a_claim_of_as_many_pods_as_can_share_it() -> None:
    (finding,) = examined(held("hami-gpu-0", "mine", users=256))
    assert told([finding]) == [("error", WHERE)]
    assert "reserved for 256 pods" in finding.what
    full = held("hami-gpu-0", "mine", users=256)
    full["status"]["reservedFor"][0]["name"] = "waiting"
    assert examined(full) == []
    assert examined(held("hami-gpu-0", "mine", users=255)) == []


def test_a_device_that_no_slice_has_any_more() -> None:
    (finding,) = examined(held("hami-gpu-9", "mine"))
    assert told([finding]) == [("error", WHERE)]
    assert "hami-gpu-9" in finding.what


def test_a_device_that_was_tainted_since() -> None:
    state = rig.state_of()
    perform(Action("lose", ("nvidia/0",)), state)
    (finding,) = examined(OWN, made=slices(state))
    assert told([finding]) == [("warning", WHERE)]
    assert "gpu-lost" in finding.what


def test_a_pod_that_the_kubelet_has_not_made_ready() -> None:
    condition = {"type": "PodReadyToStartContainers", "status": "False"}
    own = pod(nodeName=NODE, status={"conditions": [condition]})
    (finding,) = examined(OWN, own=own)
    assert told([finding]) == [("warning", WHERE)]
    assert "FailedPrepareDynamicResources" in finding.advice


def test_a_claim_that_is_being_deleted() -> None:
    ending = claim(request(memory="1Gi", cores="1"))
    ending["metadata"]["deletionTimestamp"] = "2026-11-15T12:00:00Z"
    (finding,) = examined(ending)
    assert told([finding]) == [("warning", WHERE)]
