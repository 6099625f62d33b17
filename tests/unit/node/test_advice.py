from dataclasses import replace

import pytest

from hami_mock.kit.durations import about
from hami_mock.kubelet.limits import LARGEST_POD, Version, restart_seconds
from hami_mock.node.advice import warnings, without_factor
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node
from hami_mock.vendors import Role
from tests.unit.builders import (
    NODE,
    cards,
    laid_out,
    resource_named,
    slot_resource,
    unit_resource,
)


def warned_of(resource: Resource, version: Version | None) -> list[str]:
    """The warnings about a resource that has a node for itself."""
    return warnings(resource, Node(NODE, resource.cards, (resource,)), version)


def warned_resources(node: Node, version: Version | None) -> list[str]:
    return [r.name for r in node.resources if warnings(r, node, version)]


def named(name: str) -> Node:
    """A node whose devices are few, but one of its resources has this name."""
    return laid_out(resource_name=name, nvidia_memory=100, ascend_cards=0)


@pytest.mark.parametrize("version", [(1, 36), (1, 37), None])
def test_many_units_are_warned_of_with_the_numbers(version: Version | None) -> None:
    (warning,) = warned_of(unit_resource([32768, 32768]), version)
    away = f"needs about {about(restart_seconds([65536], version))}"
    for part in ("65536 of 65536", str(LARGEST_POD), away, "--nvidia-memory-factor auto"):
        assert part in warning


@pytest.mark.parametrize(
    ("version", "words"),
    [((1, 36), "kubelet 1.36:"), ((1, 37), "kubelet 1.37:"), (None, "kubelet 1.36 or newer:")],
)
def test_the_warning_says_which_kubelet_it_is_about(version: Version | None, words: str) -> None:
    assert words in warned_of(unit_resource([65536]), version)[0]


@pytest.mark.parametrize(
    "why",
    ["you chose --units plugin", "can't get nodes n1: no connection"],
)
def test_where_units_would_cost_nothing_is_a_sentence_whatever_the_reason(why: str) -> None:
    (warning,) = warned_of(replace(unit_resource([65536]), why=why), (1, 37))
    assert warning.endswith(
        f"; in the Node's status they would cost nothing, but they aren't put there: {why}"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(9.4, "9 s"), (99.4, "99 s"), (100, "2 min"), (1500, "25 min"), (6000, "1.7 h")],
)
def test_a_duration_is_told_in_its_natural_unit(seconds: float, words: str) -> None:
    assert about(seconds) == words


def test_the_kubelet_1_35_bears_a_full_list_without_a_warning() -> None:
    assert warned_of(unit_resource([262_144]), (1, 35)) == []


@pytest.mark.parametrize("version", [(1, 36), (1, 37), None])
def test_what_auto_makes_is_not_warned_of(version: Version | None) -> None:
    node = laid_out(version, nvidia_memory_factor="auto", ascend_memory_factor="auto")
    assert warned_resources(node, version) == []


@pytest.mark.parametrize(("version", "count"), [((1, 36), 1), ((1, 37), 0), (None, 1)])
def test_what_counts_is_the_sum_of_the_nodes_devices_up_to_1_36(
    version: Version | None, count: int
) -> None:
    few, more = unit_resource([3000]), unit_resource([6000], Role.CORES)
    assert warned_of(few, version) == warned_of(more, version) == []
    assert len(warnings(few, Node(NODE, few.cards, (few, more)), version)) == count


def test_what_is_only_a_small_share_of_the_devices_is_not_blamed() -> None:
    assert warned_resources(laid_out(), None) == [
        "nvidia.com/gpumem",
        "huawei.com/Ascend910-memory",
    ]


@pytest.mark.parametrize(
    "resource", [unit_resource([20_000], Role.CORES), slot_resource(cards(20), split=1000)]
)
def test_no_factor_is_advised_where_there_is_none(resource: Resource) -> None:
    (warning,) = warned_of(resource, None)
    assert "20000 of 20000" in warning
    assert "factor" not in warning


@pytest.mark.parametrize(
    "name",
    ["gpumem", "/gpu", "example.com/", "kubernetes.io/gpu", "sub.kubernetes.io/gpu",
     "requests.example.com/gpu"],
)  # fmt: skip
@pytest.mark.parametrize("version", [(1, 35), None])
def test_a_name_that_the_kubelet_refuses_is_warned_of(name: str, version: Version | None) -> None:
    node = named(name)
    assert warned_resources(node, version) == [name]
    (warning,) = warnings(node.resources[0], node, version)
    assert repr(name) in warning
    assert "--resource-name" in warning
    assert "example.com/gpu" in warning


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "a.b/c", "example.com/MR-V100.vCore_2"])
def test_an_ordinary_name_is_not_warned_of(name: str) -> None:
    assert warned_resources(named(name), None) == []


def test_a_bad_name_and_many_units_are_two_warnings() -> None:
    node = laid_out(resource_mem="gpumem")
    (memory,) = (resource for resource in node.resources if resource.name == "gpumem")
    assert len(warnings(memory, node, (1, 36))) == 2


def test_with_hami_the_advice_is_a_factor_that_both_sides_have() -> None:
    node = laid_out(hami="on")
    (warning,) = warnings(resource_named(node, "nvidia.com/gpumem"), node, (1, 36))
    assert "--nvidia-memory-factor and the same memoryFactor in HAMi's" in warning
    assert "auto" not in warning


def test_where_hami_has_no_factor_the_advice_is_to_leave_memory_out() -> None:
    node = laid_out(hami="on", amd_cards=1, amd_model="MI300X", mlu_cards=128, nvidia_cards=0)
    (warning,) = warnings(resource_named(node, "amd.com/gpumem"), node, (1, 36))
    assert "no memoryFactor for it: leave it out with an empty name" in warning
    assert "(--amd-resource-memory-name '')" in warning
    # The scheduler counts Cambricon's cards by their memory.
    memory = resource_named(node, "cambricon.com/mlu.smlu.vmemory")
    assert "leave it out" not in without_factor(memory.vendor, memory.offer)
