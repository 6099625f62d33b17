import pytest

from hami_mock.doctor import liveness
from hami_mock.doctor.case import NodeCase
from hami_mock.doctor.finding import Finding, Severity
from hami_mock.hami.kinds import HAMI_LOCK
from tests.makers import CAMBRICON
from tests.unit.doctor.patients import (
    DCU,
    HANDSHAKE,
    NVIDIA,
    ago,
    assigned,
    case,
    node,
    pod,
    requested,
    told,
)

DCU_CARD = "DCU-1,4,65520,100,DCU-K100_AI,0,true,0,hami:"
DCU_HANDSHAKE = "hami.io/node-handshake-dcu"


def handshakes(examined: NodeCase) -> list[Finding]:
    return [f for seen in examined.vendors for f in liveness.handshake(examined, seen)]


def dcu(handshake: str, allocatable: str = "4") -> NodeCase:
    return case(
        node(
            annotations={DCU: DCU_CARD, DCU_HANDSHAKE: handshake},
            resources={"hygon.com/dcunum": "4"},
            allocatable={"hygon.com/dcunum": allocatable},
        )
    )


def test_a_node_that_is_ready() -> None:
    assert list(liveness.ready(case(node()))) == []
    assert list(liveness.ready(case({}))) == []


def test_a_node_that_is_not_ready() -> None:
    ill = node()
    ill["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "message": "gone"}]
    ill["spec"] = {"unschedulable": True}
    first, second = liveness.ready(case(ill))
    assert (first.severity, first.what) == (Severity.ERROR, "the node is not Ready: gone")
    assert second.severity is Severity.WARNING
    assert second.advice == "kubectl uncordon n1"


@pytest.mark.parametrize("seconds", [1, 59, 3600])
def test_nvidias_request_need_not_be_answered_while_there_are_devices(seconds: int) -> None:
    found = handshakes(case(node(annotations={HANDSHAKE: requested(seconds=seconds)})))
    assert [finding.severity for finding in found] == [Severity.NOTE] * (seconds > 60)


def test_a_request_that_stays_unanswered_is_a_finding_without_cards_too() -> None:
    (finding,) = handshakes(case(node(annotations={NVIDIA: None, HANDSHAKE: requested(minutes=3)})))
    assert finding.severity is Severity.WARNING
    assert "has been unanswered for 3 min" in finding.what


def test_an_old_request_without_devices_drops_the_vendor() -> None:
    old = node(annotations={HANDSHAKE: requested(minutes=5)}, allocatable={"nvidia.com/gpu": "0"})
    (finding,) = handshakes(case(old))
    assert finding.severity is Severity.ERROR
    assert "has been unanswered for 5 min and nvidia.com/gpu is 0" in finding.what


@pytest.mark.parametrize(
    ("handshake", "severity", "what"),
    [
        (f"Reported {ago(seconds=10):%Y-%m-%d %H:%M:%S}.1 +0000 UTC", None, ""),
        ("something else", None, ""),
        ("Requesting_no time", None, ""),
        (requested(seconds=30), None, ""),
        (requested(minutes=3), Severity.WARNING, "the plugin should answer every 30 s"),
        (
            f"Reported_{ago(hours=3):%Y.%m.%d %H:%M:%S}",
            Severity.WARNING,
            "the plugin reported 3 h ago and the scheduler hasn't asked since",
        ),
        ("Deleted_2026-11-15 11:00:00", Severity.ERROR, "dropped DCU from this node"),
    ],
)
def test_a_vendor_that_must_report(handshake: str, severity: Severity | None, what: str) -> None:
    findings = handshakes(dcu(handshake))
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    assert all(what in finding.what for finding in findings)


def test_a_scheduler_that_never_asked() -> None:
    (finding,) = handshakes(case(node(annotations={HANDSHAKE: None})))
    assert told([finding]) == [("warning", HANDSHAKE)]
    iluvatar = "GPU-1,10,32768,100,MR-V100,0,true,0,:"
    (*_, last) = handshakes(case(node(annotations={"hami.io/node-MR-V100-register": iluvatar})))
    assert "it needs --enable-iluvatar for this vendor" in last.advice


def locked(value: str, pods: list[dict[str, object]] | None = None) -> list[Finding]:
    examined = case(node(annotations={HAMI_LOCK.annotation: value}), pods)
    return list(liveness.lock(examined, HAMI_LOCK))


def lock(**spans: float) -> str:
    return f"{ago(**spans):%Y-%m-%dT%H:%M:%SZ},default,p1"


def test_a_lock_is_fine_for_as_long_as_it_takes_to_allocate() -> None:
    assert locked(lock(seconds=5)) == []
    assert list(liveness.lock(case(node()), HAMI_LOCK)) == []


def test_a_lock_that_is_held_for_long_names_its_pod() -> None:
    (finding,) = locked(lock(seconds=90), [pod(annotations=assigned())])
    assert finding.severity is Severity.ERROR
    assert finding.what.startswith("held by default/p1 for 90 s (Pending, bind-phase allocating)")
    assert "`node lock contention` for 3 min more" in finding.what
    assert "kubectl annotate node n1 hami.io/mutex.lock-" in finding.advice
    (unknown,) = locked(lock(seconds=90))
    assert unknown.what.startswith("held by default/p1 for 90 s: other pods are refused")


def test_a_lock_that_names_nobody() -> None:
    (finding,) = locked(f"{ago(seconds=90):%Y-%m-%dT%H:%M:%SZ}", [])
    assert "held by a pod that it doesn't name for 90 s: other" in finding.what


@pytest.mark.parametrize(
    ("value", "pods", "what"),
    [
        (lock(minutes=6), None, "it has expired"),
        (lock(seconds=5), [], "but that pod is gone"),
    ],
)
def test_a_lock_that_the_next_pod_takes_over(
    value: str, pods: list[dict[str, object]] | None, what: str
) -> None:
    (finding,) = locked(value, pods)
    assert finding.severity is Severity.WARNING
    assert what in finding.what


def test_a_lock_that_nobody_can_read_is_held_for_ever() -> None:
    (finding,) = locked("yesterday")
    assert finding.severity is Severity.ERROR
    assert "binds no pod to this node" in finding.what


def test_cambricons_lock_expires_sooner() -> None:
    value = f"{ago(minutes=3):%Y-%m-%dT%H:%M:%SZ}"
    kind = CAMBRICON.hami.lock
    assert kind is not None
    examined = case(node(annotations={kind.annotation: value}))
    (finding,) = liveness.lock(examined, kind)
    assert "it has expired" in finding.what
