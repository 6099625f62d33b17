from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hami_mock.doctor import pod_request
from hami_mock.doctor.case import PodCase
from hami_mock.doctor.finding import Finding, Severity
from tests.unit.doctor.patients import assigned, card, node, pod, pod_case, told

Check = Callable[[PodCase], Iterator[Finding]]
GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
PERCENT = "nvidia.com/gpumem-percentage"


def found(check: Check, *arguments: Any, **more: Any) -> list[Finding]:
    return list(check(pod_case(*arguments, **more)))


@pytest.mark.parametrize(
    "check",
    [
        pod_request.scheduler,
        pod_request.count_is_asked,
        pod_request.cards_suffice,
        pod_request.card_is_large_enough,
        pod_request.percents,
        pod_request.node_suffices,
        pod_request.units,
    ],
)
def test_a_pod_that_is_well_has_no_findings(check: Check) -> None:
    assert found(check, pod(), node()) == []
    assert found(check, pod()) == []
    assert found(check, pod({"cpu": "1"}, schedulerName=""), node()) == []


@pytest.mark.parametrize(
    ("name", "severity"),
    [("", "error"), ("default-scheduler", "error"), ("volcano", "warning")],
)
def test_a_pod_that_another_scheduler_places(name: str, severity: str) -> None:
    (finding,) = found(pod_request.scheduler, pod(schedulerName=name))
    assert told([finding]) == [(severity, "pod default/p1")]
    marked = pod(schedulerName=name, annotations=assigned())
    assert found(pod_request.scheduler, marked) == []


def test_a_pod_that_the_webhook_must_pass_over() -> None:
    ignored = pod(schedulerName="", labels={"hami.io/webhook": "ignore"})
    (finding,) = found(pod_request.scheduler, ignored)
    assert "remove the label hami.io/webhook=ignore" in finding.advice


def test_memory_without_a_card() -> None:
    asked = pod({MEMORY: "1000", CORES: "30"}, {GPU: "1"})
    (finding,) = found(pod_request.count_is_asked, asked)
    assert told([finding]) == [("error", "container c0")]
    assert finding.what.startswith(f"it asks for {CORES} and {MEMORY}, but not for {GPU}")


def test_more_cards_than_the_node_has() -> None:
    (finding,) = found(pod_request.cards_suffice, pod({GPU: "3"}), node())
    assert (
        "it asks for 3 nvidia.com/gpu, each on a different card, but the node has 2" in finding.what
    )
    mig = node(card("GPU-1", mode="mig"))
    assert found(pod_request.cards_suffice, pod({GPU: "3"}), mig) == []


@pytest.mark.parametrize(("asked", "wrong"), [(32768, 0), (32769, 1)])
def test_more_memory_than_a_card_has(asked: int, wrong: int) -> None:
    findings = found(pod_request.card_is_large_enough, pod({GPU: "1", MEMORY: asked}), node())
    assert len(findings) == wrong
    assert all("the largest card here has 32768 MiB" in finding.what for finding in findings)


def test_memory_counts_in_the_vendors_units() -> None:
    iluvatar = "GPU-1,10,32768,100,MR-V100,0,true,0,:"
    here = node(annotations={"hami.io/node-MR-V100-register": iluvatar})
    asked = {"iluvatar.ai/MR-V100-vgpu": "1", "iluvatar.ai/MR-V100.vMem": "129"}
    (finding,) = found(pod_request.card_is_large_enough, pod(asked), here)
    assert "129 x 256 MiB" in finding.what
    assert finding.advice == "ask for at most 128 iluvatar.ai/MR-V100.vMem"


def test_percents_above_100() -> None:
    first, second = found(pod_request.percents, pod({GPU: "1", PERCENT: "101", CORES: "200"}))
    assert (first.severity, second.severity) == (Severity.ERROR, Severity.WARNING)
    assert "HAMi treats it as 100" in second.what


def test_hami_itself_asks_for_100_percent_of_each_iluvatar_card() -> None:
    asked = {"iluvatar.ai/MR-V100-vgpu": "2", "iluvatar.ai/MR-V100.vCore": "200"}
    assert found(pod_request.percents, pod(asked)) == []
    asked["iluvatar.ai/MR-V100-vgpu"] = "1"
    assert len(found(pod_request.percents, pod(asked))) == 1


def test_more_than_is_left() -> None:
    other = pod({GPU: "1", MEMORY: "60000"}, name="p2", nodeName="n1")
    ended = pod({MEMORY: "60000"}, name="p3", nodeName="n1", status={"phase": "Failed"})
    elsewhere = pod({MEMORY: "60000"}, name="p4", nodeName="n2")
    asked = pod({GPU: "1", MEMORY: "6000"})
    (finding,) = found(pod_request.node_suffices, asked, node(), others=[other, ended, elsewhere])
    assert told([finding]) == [("error", MEMORY)]
    assert finding.what == (
        "the pod asks for 6000; node n1 has 65536 allocatable, and other pods hold 60000"
    )
    running = pod({GPU: "1", MEMORY: "6000"}, status={"phase": "Running"})
    assert found(pod_request.node_suffices, running, node(), others=[other]) == []


@pytest.mark.parametrize(
    ("scheduler", "missing", "where"),
    [
        ("hami-scheduler", MEMORY, []),
        ("default-scheduler", MEMORY, [("error", MEMORY)]),
        ("hami-scheduler", GPU, [("error", GPU)]),
    ],
)
def test_hami_passes_over_memory_that_nobody_registers(
    scheduler: str, missing: str, where: list[tuple[str, str]]
) -> None:
    bare = node(resources={missing: None})
    findings = found(pod_request.node_suffices, pod(schedulerName=scheduler), bare)
    assert told(findings) == where
    assert all("has no such resource" in finding.what for finding in findings)


def test_an_init_container_that_asks_for_more_counts() -> None:
    asked = pod({GPU: "1"}, init={GPU: "30"})
    (finding,) = found(pod_request.node_suffices, asked, node())
    assert finding.what.startswith("the pod asks for 30;")


@pytest.mark.parametrize(("version", "wrong"), [("v1.35.8", 0), ("v1.36.1", 1), ("v1.37.1", 1)])
def test_more_units_than_a_pods_status_holds(version: str, wrong: int) -> None:
    here = node()
    here["status"]["nodeInfo"]["kubeletVersion"] = version
    findings = found(pod_request.units, pod({GPU: "1", MEMORY: "81920"}), here)
    assert told(findings) == [("error", "pod default/p1")] * wrong
