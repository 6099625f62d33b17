from pathlib import Path

import pytest

from hami_mock.fleet.allocation import NOTHING, Amounts, Shape
from hami_mock.node.pods import Pod
from hami_mock.settings.settings import load_pools
from tests.invented_fleet import assigned_pod

POOLS = """
vendors: [nvidia]
hami: {hami}
pools: [{{name: a, nodes: 1, nvidia: {{cards: 2, model: T4}}}}]
"""
T4 = 15360


def shape(folder: Path, hami: str = "true") -> Shape:
    file = folder / "fleet.yaml"
    file.write_text(POOLS.format(hami=hami))
    (pool,) = load_pools(str(file))
    return Shape.of(pool)


def asking(**counts: int) -> Pod:
    names = {f"nvidia.com/{name.replace('_', '-')}": count for name, count in counts.items()}
    return Pod("ns", "p", containers=("main",), requests={"main": names})


def test_what_a_node_has_to_give(tmp_path: Path) -> None:
    found = shape(tmp_path)
    assert found.whole == Amounts(memory=2 * T4, slots=20, cores=200)
    assert (found.cards, found.models) == (2, {"T4": 2})


def test_what_hami_assigned_counts_and_not_what_was_asked_for(tmp_path: Path) -> None:
    pod = assigned_pod("p", ("GPU-1", 4000, 30), ("GPU-2", 4000, 30))
    assert shape(tmp_path).used_by(pod) == Amounts(memory=8000, slots=2, cores=60)


def test_a_part_without_memory_is_a_whole_card(tmp_path: Path) -> None:
    assert shape(tmp_path).used_by(assigned_pod("p", ("GPU-1", 0, 0))) == Amounts(T4, 1, 0)


@pytest.mark.parametrize(
    ("pod", "used"),
    [
        (asking(gpu=2, gpumem=4000, gpucores=30), Amounts(4000, 2, 30)),
        (asking(gpu=1, gpumem_percentage=50), Amounts(T4 // 2, 1, 0)),
        (asking(gpu=1, gpumem=1000, gpumem_percentage=50), Amounts(1000, 1, 0)),
        (asking(), NOTHING),
        (Pod("ns", "p", requests={"main": {"cpu": 3}}), NOTHING),
    ],
)
def test_else_a_pod_has_what_it_asks_for(tmp_path: Path, pod: Pod, used: Amounts) -> None:
    assert shape(tmp_path, "true").used_by(pod) == used
    assert shape(tmp_path, "false").used_by(pod) == used


def test_an_annotation_that_can_not_be_read_says_nothing(tmp_path: Path) -> None:
    pod = asking(gpu=1)
    told = {"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA:;"}
    odd = Pod("ns", "p", "", told, (), ("main",), requests=pod.requests)
    assert shape(tmp_path).used_by(odd) == Amounts(slots=1)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_over_has_nothing(tmp_path: Path, phase: str) -> None:
    pod = assigned_pod("p", ("GPU-1", 4000, 30))
    over = Pod("ns", "p", "", pod.annotations, (), ("main",), phase=phase)
    assert shape(tmp_path).used_by(over) == NOTHING


def test_cores_are_percent_of_a_card_whatever_a_maker_counts(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    text = "vendors: [mthreads]\nhami: true\npools: [{name: a, nodes: 1, mthreads: {cards: 2}}]\n"
    file.write_text(text)
    (pool,) = load_pools(str(file))
    found = Shape.of(pool)
    assert found.whole.cores == 200
    asked = {"mthreads.com/vgpu": 1, "mthreads.com/sgpu-core": 8}
    half = Pod("ns", "p", containers=("main",), requests={"main": asked})
    assert found.used_by(half) == Amounts(slots=1, cores=50)
