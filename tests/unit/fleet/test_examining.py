"""What the doctor of a fleet finds."""

from typing import Any

import pytest

from hami_mock.fleet.examining import Facts, examine, sampled

_FINE: dict[str, Any] = {"nodes": 50, "status": {}}


def told(**facts: Any) -> list[tuple[str, str]]:
    return [(str(each.severity), each.what) for each in examine(Facts(**{**_FINE, **facts}))]


def test_of_a_fleet_that_is_well_there_is_nothing_to_say() -> None:
    assert told(stopped=2) == [("ok", "48 are ready")]


def test_a_fleet_without_nodes_is_said() -> None:
    assert told(nodes=0) == [("error", "the API server has no nodes of this fleet")]


@pytest.mark.parametrize(
    ("facts", "severity", "text"),
    [
        (
            {"silent": ["a", "b"]},
            "error",
            "2 nodes were never ready because KWOK doesn't manage them: a, b",
        ),
        (
            {"not_ready": ["a", "b"], "lease_ages": {"a": (400.0, 40.0)}},
            "error",
            "2 nodes aren't ready because their leases have expired: that of a was "
            "renewed 7 min ago and lasts 40 s",
        ),
        ({"not_ready": ["a"], "lease_ages": {"a": (5.0, 40.0)}}, "error", "1 aren't ready: a"),
        (
            {"changed": {"a": ["capacity", "x"]}},
            "warning",
            "1 differ from the file: a: capacity, x",
        ),
        ({"answer_seconds": 0.5}, "warning", "it takes 500 ms to answer a small request"),
        (
            {"status": {"writes": {"refused": 3, "allowed": 12.5}}},
            "warning",
            "it refused or delayed writes 3 times; now 12.5 a second are allowed",
        ),
        (
            {"status": {"parts": {"nodes": {"disputes": ["a"]}}}},
            "warning",
            "something else changes 1 of the fleet's nodes: a",
        ),
        (
            {"status": {"parts": {"nodes": {"problems": {"a": "it is somebody's"}}}}},
            "error",
            "it is somebody's",
        ),
        (
            {
                "status": {
                    "parts": {"handshakes": {"round_seconds": 99.0, "nodes": 9, "per_second": 0.3}}
                }
            },
            "warning",
            "9 nodes should report every half minute, but take 99 s",
        ),
        ({"status": {"failures": {"nodes": "it broke"}}}, "error", "it broke"),
        (
            {"nodes": 5000},
            "note",
            "by default it looks at 500 of 5000 nodes for a pod, and passes no others to HAMi's "
            "scheduler: a pod that only a few nodes can take may stay Pending although there is "
            "room",
        ),
        (
            {"nodes": 1000, "hami": ["scheduler", "--kube-burst=10"]},
            "warning",
            "with --kube-qps 5 its first pass over 1000 nodes takes about 33 min; until then no "
            "pod is placed, though /readyz says 200",
        ),
    ],
)
def test_what_is_wrong_is_found(facts: dict[str, Any], severity: str, text: str) -> None:
    assert (severity, text) in told(**facts)


def test_hami_with_many_requests_a_second_is_fine() -> None:
    found = told(nodes=1000, hami=["scheduler", "--kube-qps=1000"])
    assert [severity for severity, _ in found] == ["ok", "note"]


def test_a_fleet_without_a_process_is_a_note() -> None:
    assert [severity for severity, _ in told(status=None)] == ["ok", "note"]


@pytest.mark.parametrize(("nodes", "seen"), [(99, 99), (500, 230), (5000, 500), (10_000, 500)])
def test_the_scheduler_looks_at_a_part_of_many_nodes(nodes: int, seen: int) -> None:
    assert sampled(nodes) == seen
