"""What the vendors of HAMi, and HAMi's own units and names, make of a layout."""

import re
from typing import Any

import pytest

from hami_mock.kubelet.limits import too_many
from tests.defaults import DEFAULT_COUNTS
from tests.unit.builders import counts, laid_out, problems_of, resource_named


def test_hami_adds_its_resources() -> None:
    added = {
        name: n for name, n in counts(laid_out(hami="on")).items() if name not in DEFAULT_COUNTS
    }
    assert added == {
        "cambricon.com/mlu.smlu.vmemory": 2 * (23374 // 256),
        "cambricon.com/mlu.smlu.vcore": 200,
        "iluvatar.ai/MR-V100-vgpu": 20,
        "iluvatar.ai/MR-V100.vMem": 2 * 128,
        "huawei.com/Ascend910B3": 8,
        "huawei.com/Ascend910B3-memory": 131072,
        "huawei.com/Ascend910B3-core": 200,
    }


def test_of_cards_in_instances_nothing_is_scaled_for_the_kubelet_or_hami() -> None:
    flags: dict[str, Any] = {"nvidia_memory_scaling": 2, "nvidia_core_scaling": 2}
    scaled, cut = (laid_out(hami="on", nvidia_mode=mode, **flags) for mode in ("hami-core", "mig"))
    units = {"nvidia.com/gpumem": 65536, "nvidia.com/gpucores": 200}
    assert units.items() <= counts(cut).items()
    assert {name: 2 * n for name, n in units.items()}.items() <= counts(scaled).items()
    side = resource_named(cut, "nvidia.com/gpu").hami
    assert side is not None
    assert (side.memory_scaling, side.core_scaling) == (1, 1)


def test_what_hami_sees_is_on_the_resources_that_count_slots() -> None:
    node = laid_out(hami="on", hygon_cards=1)
    sides = {resource.name: resource.hami for resource in node.resources}
    assert {name for name, side in sides.items() if side} == {
        "nvidia.com/gpu",
        "cambricon.com/vmlu",
        "iluvatar.ai/MR-V100-vgpu",
        "huawei.com/Ascend910B3",
        "hygon.com/dcunum",
    }
    assert [side.vendor.word for side in sides.values() if side] == [
        "NVIDIA",
        "MLU",
        "MR-V100",
        "Ascend910B3",
        "DCU",
    ]
    assert all(resource.hami is None for resource in laid_out().resources)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"hygon_cards": 2}, {"hygon.com/dcunum": 8, "hygon.com/dcumem": 131040,
                              "hygon.com/dcucores": 200}),
        ({"metax_cards": 2}, {"metax-tech.com/sgpu": 20, "metax-tech.com/vmemory": 128,
                              "metax-tech.com/vcore": 200}),
        ({"metax_gpu_cards": 8}, {"metax-tech.com/gpu": 8}),
        ({"enflame_cards": 1}, {"enflame.com/drs-gcu": 10, "enflame.com/gcu-memory": 48,
                                "enflame.com/gcu-core": 100}),
        ({"enflame_gcu_cards": 3}, {"enflame.com/gcu": 3}),
        ({"mthreads_cards": 2}, {"mthreads.com/vgpu": 200, "mthreads.com/sgpu-memory": 192,
                                 "mthreads.com/sgpu-core": 32}),
        ({"kunlun_cards": 1}, {"kunlunxin.com/vxpu": 10, "kunlunxin.com/vxpu-memory": 98304}),
        ({"kunlun_xpu_cards": 2}, {"kunlunxin.com/xpu": 2}),
        ({"awsneuron_cards": 4}, {"aws.amazon.com/neuron": 4, "aws.amazon.com/neuroncore": 8}),
        ({"awsneuron_cards": 4, "awsneuron_model": "Inferentia1"},
         {"aws.amazon.com/neuron": 4, "aws.amazon.com/neuroncore": 16}),
        ({"amd_cards": 1}, {"amd.com/gpu": 10, "amd.com/gpumem": 196592, "amd.com/gpucores": 100}),
        ({"vastai_cards": 2}, {"vastaitech.com/va": 20}),
        ({"biren_cards": 2}, {"birentech.com/gpu": 2}),
    ],
)  # fmt: skip
def test_the_other_vendors_of_hami(flags: dict[str, Any], expected: dict[str, int]) -> None:
    none: dict[str, Any] = {f"{key}_cards": 0 for key in ("nvidia", "mlu", "iluvatar", "ascend")}
    assert counts(laid_out(**none, **flags)) == expected


@pytest.mark.parametrize(
    ("factor", "unit", "count"),
    [("1", "256 MiB", 256), ("4", "1024 MiB", 64), ("3", "768 MiB", 84)],
)
def test_the_users_factor_multiplies_the_unit(factor: str, unit: str, count: int) -> None:
    name = "iluvatar.ai/MR-V100.vMem"
    node = laid_out(iluvatar_memory_factor=factor, iluvatar_memory_name=name)
    resource = resource_named(node, name)
    assert (resource.unit, resource.count) == (unit, count)


def test_auto_never_makes_units_finer_than_hamis() -> None:
    flags = {f"{key}_memory_factor": "auto" for key in ("nvidia", "ascend", "mlu", "metax")}
    names = {f"{key}_memory_name": f"example.com/{key}" for key in ("mlu", "iluvatar")}
    node = laid_out((1, 36), metax_cards=1, **flags, **names)
    factors = {r.vendor.prefix: r.factor for r in node.resources if r.unit.endswith("MiB")}
    assert factors["nvidia"] == factors["ascend"] < 256
    assert (factors["mlu"], factors["metax"], factors["iluvatar"]) == (256, 1024, 256)
    assert not too_many(node.counts, (1, 36))


@pytest.mark.parametrize(("cards", "fits"), [(1, True), (2, False), (8, False), (128, False)])
def test_longer_ids_are_reckoned_with(cards: int, fits: bool) -> None:
    """IDs of AMD's memory have four characters, 17 bytes with the rest, and soon five."""
    units = cards * 196592
    size = 7921 * 17 + min(units - 7921, 704_969) * 18 + max(units - 712_890, 0) * 19
    if fits:
        node = laid_out(amd_cards=cards)
        memory = resource_named(node, "amd.com/gpumem")
        assert memory.list_size() == len(memory.encode_list()) == size
        return
    (line,) = problems_of(lambda: laid_out(amd_cards=cards))
    assert f"{units} devices need a list of {size} bytes" in line
    found = re.search(r"smallest memory factor that fits is (\d+) \(--amd-memory-factor\)", line)
    assert found is not None
    factor = int(found[1])
    laid_out(amd_cards=cards, amd_memory_factor=factor)
    assert problems_of(lambda: laid_out(amd_cards=cards, amd_memory_factor=factor - 1))


def test_a_refusal_names_no_factor_that_hami_does_not_know() -> None:
    (line,) = problems_of(lambda: laid_out(hami="on", amd_cards=2))
    assert "393184 devices need a list of" in line
    assert "leave it out with an empty name (--amd-resource-memory-name '')" in line
    assert "--amd-memory-factor" not in line


def test_the_factor_that_a_refusal_names_is_the_users_not_mib() -> None:
    flags: dict[str, Any] = {"metax_cards": 128, "metax_memory": 16 * 1024 * 1024}
    (line,) = problems_of(lambda: laid_out(**flags))
    found = re.search(r"fits is (\d+) \(--metax-memory-factor\)", line)
    assert found is not None
    factor = int(found[1])
    laid_out(**flags, metax_memory_factor=factor)
    assert problems_of(lambda: laid_out(**flags, metax_memory_factor=factor - 1))


def test_a_card_smaller_than_hamis_unit_is_an_error() -> None:
    (line,) = problems_of(lambda: laid_out(metax_cards=1, metax_memory=1000))
    assert "less than one unit of 1024 MiB" in line
    assert "--metax-memory-scaling" in line
