import json
from collections.abc import Callable, Iterator

import pytest

from hami_mock.doctor import counts
from hami_mock.doctor.case import NodeCase, VendorCase
from hami_mock.doctor.examine import examine_node
from hami_mock.doctor.finding import Finding
from tests.unit.doctor.patients import NVIDIA, RESOURCES, card, case, config, node, pod, told

Check = Callable[[NodeCase, VendorCase], Iterator[Finding]]
MEMORY = "nvidia.com/gpumem"


def found(check: Check, examined: NodeCase) -> list[Finding]:
    return [finding for seen in examined.vendors for finding in check(examined, seen)]


@pytest.mark.parametrize(
    "check", [counts.count_is_there, counts.not_zero, counts.memory_number, counts.too_many]
)
def test_a_node_that_is_well_has_no_findings(check: Check) -> None:
    assert found(check, case(node())) == []


def test_the_limits_are_those_that_were_measured() -> None:
    assert counts.MOST_UNITS == 262_144


def test_a_count_resource_that_nobody_registered() -> None:
    bare = node(resources=dict.fromkeys(["nvidia.com/gpu", MEMORY], None))
    (finding,) = found(counts.count_is_there, case(bare))
    assert told([finding]) == [("error", "nvidia.com/gpu")]
    assert f"although {NVIDIA} lists 2 cards" in finding.what


def test_allocatable_0_of_something() -> None:
    (finding,) = found(counts.not_zero, case(node(allocatable={"nvidia.com/gpu": "0"})))
    assert told([finding]) == [("error", "nvidia.com/gpu")]
    assert finding.what.startswith("allocatable is 0 of 20")


def test_capacity_0() -> None:
    (finding,) = found(counts.not_zero, case(node(resources={"nvidia.com/gpucores": "0"})))
    assert told([finding]) == [("error", "nvidia.com/gpucores")]
    assert "gone for five minutes or more" in finding.what


@pytest.mark.parametrize(
    ("name", "is_said"),
    [("nvidia.com/gpu", False), ("nvidia.com/gpucores", True), (MEMORY, True)],
)
def test_a_resource_that_was_left_out_later_is_still_known_to_the_kubelet(
    name: str, *, is_said: bool
) -> None:
    examined = case(node(resources={name: "0"}))
    (finding,) = (*found(counts.not_zero, examined), *found(counts.memory_number, examined))
    assert ("if no plugin should register it, delete node n1" in finding.advice) is is_said


def memory(devmem: int, capacity: int, factor: int = 1) -> list[Finding]:
    cards = [card(f"GPU-{i}", index=i, devmem=devmem) for i in range(4)]
    names = config(
        "nvidia: {resourceCountName: nvidia.com/gpu, resourceMemoryName: nvidia.com/gpumem, "
        f"memoryFactor: {factor}}}"
    )
    examined = case(node(*cards, resources={MEMORY: str(capacity)}), config=names)
    return [*found(counts.memory_number, examined), *found(counts.not_zero, examined)]


@pytest.mark.parametrize(
    ("devmem", "capacity", "factor"),
    [(1000, 4000, 1), (1000, 2000, 2), (1001, 2002, 2), (1001, 2000, 2)],
)
def test_memory_that_is_the_cards(devmem: int, capacity: int, factor: int) -> None:
    assert memory(devmem, capacity, factor) == []


def test_memory_that_somebody_reckons_with_another_factor() -> None:
    (finding,) = memory(1000, 2000)
    assert finding.severity == "warning"
    assert "capacity is 2000, but the cards in" in finding.what
    assert finding.advice.startswith("2000 would be right for a memoryFactor of 2")


@pytest.mark.parametrize("capacity", [3999, 4001, 9000])
def test_memory_that_is_something_else(capacity: int) -> None:
    (finding,) = memory(1000, capacity)
    assert finding.advice.startswith("check that the plugin that registers it has read the current")


@pytest.mark.parametrize(
    ("devmem", "what", "advice"),
    [
        (1000, "the cards have 4000 units", "check that the plugin that registers it"),
        (40960, "HAMi's mock can't register more than 123011", "set memoryFactor to 2, or use"),
        (81920, "larger than the kubelet's limit of 4194304 bytes", "that fits is 2"),
    ],
)
def test_memory_0_and_the_limit(devmem: int, what: str, advice: str) -> None:
    (finding,) = memory(devmem, 0)
    assert finding.severity == "error"
    assert what in finding.what
    assert advice in finding.advice


def test_memory_that_nobody_registers_is_nobodys_fault() -> None:
    assert found(counts.memory_number, case(node(resources={MEMORY: None}))) == []


@pytest.mark.parametrize(
    ("version", "count"), [("v1.35.8", 0), ("v1.36.0", 1), ("v1.37.1", 1), ("", 1)]
)
def test_many_devices_are_dear_from_1_36_on(version: str, count: int) -> None:
    examined = node()
    examined["status"]["nodeInfo"]["kubeletVersion"] = version
    findings = found(counts.too_many, case(examined))
    assert told(findings) == [("warning", MEMORY)] * count
    factor = "--nvidia-memory-factor, and the same memoryFactor in HAMi's configuration"
    assert all(factor in finding.advice for finding in findings)


@pytest.mark.parametrize(
    ("capacity", "advice"),
    [
        (98296, "98296 would be right for a memoryFactor of 2: HAMi's configuration has none"),
        (0, "in the node's status (hami-mock --units status) there is no limit"),
    ],
)
def test_no_factor_is_advised_that_hamis_scheduler_does_not_know(
    capacity: int, advice: str
) -> None:
    cards = [card(f"GPU-{i}", index=i, devmem=196592, type="AMD-MI300X") for i in range(2)]
    if capacity:
        del cards[1:]
    resources = {"amd.com/gpu": "20", "amd.com/gpumem": str(capacity)}
    told_by = {"hami.io/node-amd-register": json.dumps(cards)}
    examined = case(node(annotations=told_by, resources=resources))
    findings = [*found(counts.memory_number, examined)]
    assert [each.where for each in findings] == ["amd.com/gpumem"]
    assert findings[0].advice.startswith(advice)


# What an agent with --hami on for all vendors leaves behind when it comes back with NVIDIA alone.
GONE = dict.fromkeys(("cambricon.com/vmlu", "hygon.com/dcunum", "hygon.com/dcumem"), "0")


def test_what_an_earlier_configuration_left_behind_is_one_note() -> None:
    findings = examine_node(case(node(resources=GONE), []))
    assert told(findings) == [("ok", "NVIDIA"), ("note", "node n1")]
    assert "3 resources are 0" in findings[1].what
    assert "cambricon.com/vmlu, hygon.com/dcumem, hygon.com/dcunum" in findings[1].what


def test_what_a_pod_asks_for_or_an_annotation_promises_is_no_leftover() -> None:
    waiting = pod({"hygon.com/dcunum": "1"})
    findings = told(examine_node(case(node(resources=GONE), [waiting])))
    assert ("error", "hygon.com/dcunum") in findings
    promised = node(resources=dict.fromkeys(RESOURCES, "0"))
    assert ("error", "nvidia.com/gpu") in told(examine_node(case(promised, [])))
