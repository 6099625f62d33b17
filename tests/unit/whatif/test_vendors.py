"""What containers ask of each vendor's cards is read as HAMi's scheduler reads it."""

from pathlib import Path

import pytest

from hami_mock.whatif.demand import Container
from hami_mock.whatif.outcome import CardShare
from tests.unit.whatif.fleets import fleet, placed, pod

_FLEETS = {
    "mlu": "mlu: {cards: 2}",
    "hygon": "hygon: {cards: 2}",
    "ascend": "ascend: {cards: 2, model: Ascend910B3}",
    "mthreads": "mthreads: {cards: 2}",
    "amd": "amd: {cards: 2}",
    "kunlun": "kunlun: {cards: 2}",
    "enflame": "enflame: {cards: 2, split: 6}",
    "biren": "biren: {cards: 2}",
    "awsneuron": "awsneuron: {cards: 2}",
    "iluvatar": "iluvatar: {cards: 2}",
}


@pytest.mark.parametrize(
    ("vendor", "asks", "shares"),
    [
        ("mlu", {"cambricon.com/vmlu": 1, "cambricon.com/mlu.smlu.vmemory": 4}, [(1024, 100, 1)]),
        (
            "mlu",
            {"cambricon.com/vmlu": 1, "cambricon.com/mlu.smlu.vcore": 5},
            [(None, 5, 1)],
        ),
        ("hygon", {"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000}, [(2000, 100, 1)]),
        (
            "ascend",
            {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 9000},
            [(16384, 0, 1)],
        ),
        (
            "mthreads",
            {
                "mthreads.com/vgpu": 2,
                "mthreads.com/sgpu-memory": 16,
                "mthreads.com/sgpu-core": 8,
            },
            [(4096, 4, 1), (4096, 4, 1)],
        ),
        (
            "amd",
            {"amd.com/gpu": 1, "amd.com/gpumem": 4000, "amd.com/gpucores": 50},
            [(4000, 152, 1)],
        ),
        (
            "kunlun",
            {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 1000},
            [(24576, 25, 1)],
        ),
        ("enflame", {"enflame.com/drs-gcu": 3}, [(24576, 50, 3)]),
        ("biren", {"birentech.com/gpu": 1}, [(0, 0, 1)]),
        ("awsneuron", {"aws.amazon.com/neuroncore": 3}, [(0, 2, 1), (0, 2, 1)]),
        (
            "iluvatar",
            {"iluvatar.ai/MR-V100-vgpu": 1, "iluvatar.ai/MR-V100.vMem": 8},
            [(2048, 0, 1)],
        ),
    ],
)  # fmt: skip
def test_a_request_is_read(
    tmp_path: Path, vendor: str, asks: dict[str, int], shares: list[tuple[int | None, int, int]]
) -> None:
    pools = fleet(
        tmp_path,
        f"name: a, nodes: 1, {_FLEETS[vendor]}",
        vendors=vendor.replace("mlu", "cambricon"),
    )
    outcome = placed(pools, pod(Container(asks)))
    (placement,) = outcome.placements
    assert [_some(each, shares[0]) for each in placement.cards] == shares


def test_no_cores_of_neuron_are_no_card(tmp_path: Path) -> None:
    pools = fleet(tmp_path, f"name: a, nodes: 1, {_FLEETS['awsneuron']}", vendors="awsneuron")
    (placement,) = placed(pools, pod(Container({"aws.amazon.com/neuroncore": 0}))).placements
    assert placement.cards == ()


def _some(share: CardShare, wanted: tuple[int | None, int, int]) -> tuple[int | None, int, int]:
    return (None if wanted[0] is None else share.memory, share.cores, share.slots)
