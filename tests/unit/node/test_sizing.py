import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hami_mock.kubelet.limits import too_many
from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.settings.options import BY_NAME
from tests.defaults import DEFAULT_COUNTS
from tests.unit.builders import config_file, counts, laid_out, problems_of, resource_named

GPUMEM = "nvidia.com/gpumem"
ASCEND_MEMORY = "huawei.com/Ascend910-memory"


def nvidia_only(version: tuple[int, int] | None = None, **flags: Any) -> dict[str, int]:
    others = {"mlu_cards": 0, "iluvatar_cards": 0, "ascend_cards": 0}
    return counts(laid_out(version, **{**others, **flags}))


def test_no_flags_make_the_eight_resources() -> None:
    assert counts(laid_out()) == DEFAULT_COUNTS


def test_a_card_is_the_same_card_in_all_of_its_vendors_resources() -> None:
    node = laid_out()
    by_vendor = {resource.vendor.prefix: resource.cards for resource in node.resources}
    assert all(resource.cards == by_vendor[resource.vendor.prefix] for resource in node.resources)
    assert sum(by_vendor.values(), ()) == node.cards
    assert len(node.cards) == 8


@pytest.mark.parametrize(
    ("flags", "name", "count"),
    [
        ({"nvidia_cards": 8}, "nvidia.com/gpu", 80),
        ({"nvidia_split": 4}, "nvidia.com/gpu", 8),
        ({"nvidia_core_scaling": 1.15}, "nvidia.com/gpucores", 230),
        ({"nvidia_core_scaling": 1.15, "nvidia_cards": 1}, "nvidia.com/gpucores", 115),
        ({"nvidia_core_scaling": 2.5}, "nvidia.com/gpumem-percentage", 200),
        ({"nvidia_memory_scaling": 1.5}, GPUMEM, 98304),
        ({"nvidia_memory_scaling": 0.5}, GPUMEM, 32768),
        ({"nvidia_memory_scaling": 1.15, "nvidia_memory": 100}, GPUMEM, 230),
        ({"nvidia_memory_scaling": 0.29, "nvidia_memory": 100}, GPUMEM, 58),
        ({"nvidia_memory": 16384}, GPUMEM, 32768),
        ({"nvidia_model": "T4"}, GPUMEM, 30720),
        ({"nvidia_memory_factor": 16}, GPUMEM, 4096),
        ({"nvidia_memory_factor": 1000}, GPUMEM, 64),
        ({"mlu_cards": 3, "mlu_split": 7}, "cambricon.com/vmlu", 21),
        ({"iluvatar_core_scaling": 0.5}, "iluvatar.ai/MR-V100.vCore", 100),
        ({"ascend_model": "Ascend310P"}, ASCEND_MEMORY, 43054),
        ({"ascend_memory_factor": 1024}, ASCEND_MEMORY, 128),
    ],
)
def test_flags_size_the_resources(flags: dict[str, Any], name: str, count: int) -> None:
    assert counts(laid_out(**flags))[name] == count


def test_units_say_how_many_mib_they_stand_for() -> None:
    node = laid_out(nvidia_memory_factor=16)
    assert resource_named(node, GPUMEM).unit == "16 MiB"
    assert resource_named(node, ASCEND_MEMORY).unit == "1 MiB"


def test_a_vendor_without_cards_is_not_registered() -> None:
    assert set(nvidia_only()) == {
        "nvidia.com/gpu",
        "nvidia.com/gpucores",
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
    }


def test_no_cards_at_all_make_an_empty_node() -> None:
    node = laid_out(nvidia_cards=0, mlu_cards=0, iluvatar_cards=0, ascend_cards=0)
    assert (node.cards, node.resources) == ((), ())


def test_resources_can_be_renamed() -> None:
    node = laid_out(resource_mem="example.com/mem")
    assert resource_named(node, "example.com/mem").source == "--resource-mem"
    assert GPUMEM not in counts(node)


def test_mixed_groups_add_up_card_by_card(tmp_path: Path) -> None:
    text = "nvidia-groups: [{cards: 2, model: T4}, {model: A100-SXM4-80GB}, {memory: 1000}]"
    node = laid_out(config=config_file(tmp_path, text))
    memory = resource_named(node, GPUMEM)
    assert list(memory.devices.counts.values()) == [15360, 15360, 81920, 1000]
    assert [card.model.name for card in memory.cards] == [
        "T4",
        "T4",
        "A100-SXM4-80GB",
        "V100-SXM2-32GB",
    ]
    assert counts(node)["nvidia.com/gpu"] == 40
    assert counts(node)["nvidia.com/gpumem-percentage"] == 400


def test_the_smallest_card_of_mixed_groups_must_have_a_unit_too(tmp_path: Path) -> None:
    config = config_file(tmp_path, "nvidia-groups: [{model: T4}, {memory: 7}]")
    (line,) = problems_of(lambda: laid_out(config=config, nvidia_memory_factor=8))
    assert "card 1" in line


def test_one_factor_rounds_each_card_of_its_own_down() -> None:
    node = laid_out(nvidia_memory=1000, nvidia_memory_factor=300)
    assert list(resource_named(node, GPUMEM).devices.counts.values()) == [3, 3]


def test_a_list_of_exactly_the_limit_is_registered() -> None:
    node = laid_out(nvidia_cards=4, nvidia_memory=65536)
    assert resource_named(node, GPUMEM).list_size() == MESSAGE_LIMIT


def test_a_list_over_the_limit_is_refused_with_all_the_numbers() -> None:
    lines = problems_of(lambda: laid_out(nvidia_cards=8, nvidia_model="A100-SXM4-80GB"))
    assert len(lines) == 1
    for part in (GPUMEM, "655360", "4194304", "is 3 (--nvidia-memory-factor)"):
        assert part in lines[0]


def test_every_resource_over_its_limit_gets_a_line() -> None:
    flags: dict[str, Any] = {"nvidia_cards": 128, "nvidia_split": 1024, "nvidia_core_scaling": 100}
    lines = problems_of(lambda: laid_out(**flags, ascend_cards=128))
    assert [line.partition(":")[0] for line in lines] == [
        "nvidia.com/gpu",
        "nvidia.com/gpucores",
        GPUMEM,
        ASCEND_MEMORY,
    ]
    assert "--nvidia-split or --nvidia-cards" in lines[0]
    assert "--nvidia-core-scaling or --nvidia-cards" in lines[1]
    assert "--ascend-memory-factor" in lines[3]


@settings(max_examples=25)
@given(memory=st.integers(1, 16 * 1024 * 1024), cards=st.integers(1, 128))
@example(memory=262_144, cards=1)
@example(memory=262_145, cards=1)
@example(memory=16 * 1024 * 1024, cards=128)
def test_the_factor_that_a_refusal_names_is_the_smallest_that_fits(memory: int, cards: int) -> None:
    flags: dict[str, Any] = {"nvidia_memory": memory, "nvidia_cards": cards}
    if memory * cards <= 262_144:
        assert nvidia_only(**flags)[GPUMEM] == memory * cards
        return
    line = problems_of(lambda: nvidia_only(**flags))[0]
    found = re.search(r"smallest memory factor that fits is (\d+)", line)
    assert found is not None
    factor = int(found[1])
    assert nvidia_only(**flags, nvidia_memory_factor=factor)[GPUMEM] == memory // factor * cards
    worse = problems_of(lambda: nvidia_only(**flags, nvidia_memory_factor=factor - 1))
    assert GPUMEM in worse[0]


@settings(max_examples=25)
@given(
    version=st.sampled_from([(1, 36), (1, 37), (2, 0), None]),
    memory=st.integers(1000, 300_000),
    cards=st.integers(1, 16),
)
@example(version=(1, 36), memory=32768, cards=2)
@example(version=None, memory=81920, cards=8)
def test_auto_is_the_smallest_power_of_two_that_is_safe_from_1_36_on(
    version: tuple[int, int] | None, memory: int, cards: int
) -> None:
    flags: dict[str, Any] = {"nvidia_memory": memory, "nvidia_cards": cards, "ascend_cards": 0}
    node = laid_out(version, **flags, nvidia_memory_factor="auto")
    factor = resource_named(node, GPUMEM).factor
    assert factor.bit_count() == 1
    assert not too_many(node.counts, version)
    finer = memory // max(factor // 2, 1) * cards
    others = [resource.count for resource in node.resources if resource.name != GPUMEM]
    assert factor == 1 or too_many([*others, finer], version)


@pytest.mark.parametrize("cards", [32, 64, 128])
def test_auto_leaves_memory_to_every_card_although_the_rest_is_too_much_already(cards: int) -> None:
    node = laid_out((1, 36), nvidia_cards=cards, nvidia_memory_factor="auto", ascend_cards=0)
    assert min(resource_named(node, GPUMEM).devices.counts.values()) > 0


@pytest.mark.parametrize(("cards", "factor"), [(2, 1), (4, 2), (8, 4), (128, 64)])
def test_auto_for_1_35_takes_the_finest_units_that_fit(cards: int, factor: int) -> None:
    node = laid_out((1, 35), nvidia_cards=cards, nvidia_memory=81920, nvidia_memory_factor="auto")
    assert resource_named(node, GPUMEM).factor == factor


def test_auto_counts_the_units_of_all_vendors_that_it_decides_on() -> None:
    def factors(**flags: Any) -> tuple[int, int]:
        node = laid_out((1, 36), **flags)
        return resource_named(node, GPUMEM).factor, resource_named(node, ASCEND_MEMORY).factor

    nvidia, chosen = factors(nvidia_memory_factor="auto", ascend_memory_factor=4)
    first, second = factors(nvidia_memory_factor="auto", ascend_memory_factor="auto")
    assert chosen == 4
    assert first == second > nvidia > 1


@pytest.mark.parametrize(("version", "factor"), [((1, 36), 64), ((1, 37), 32), (None, 64)])
def test_auto_is_finer_where_the_kubelet_looks_in_one_resource_only(
    version: tuple[int, int] | None, factor: int
) -> None:
    node = laid_out(version, nvidia_memory_factor="auto", ascend_memory_factor="auto")
    assert resource_named(node, GPUMEM).factor == factor
    assert resource_named(node, ASCEND_MEMORY).factor == factor


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (
            {"nvidia_memory": 100, "nvidia_memory_factor": 101},
            (GPUMEM, "card 0", "V100-SXM2-32GB", "101 MiB", "--nvidia-memory-factor"),
        ),
        (
            {"nvidia_memory": 10, "nvidia_memory_scaling": 0.05},
            (GPUMEM, "--nvidia-memory-scaling"),
        ),
        (
            {"nvidia_core_scaling": 0.001},
            ("nvidia.com/gpucores", "1 %", "--nvidia-core-scaling"),
        ),
        (
            {"iluvatar_core_scaling": 0.001},
            ("iluvatar.ai/MR-V100.vCore", "1 %", "--iluvatar-core-scaling"),
        ),
    ],
)
def test_a_card_of_less_than_one_unit_is_an_error(
    flags: dict[str, Any], parts: tuple[str, ...]
) -> None:
    lines = problems_of(lambda: laid_out(**flags))
    assert len(lines) == 1
    assert all(part in lines[0] for part in parts)


@pytest.mark.parametrize(
    "flags",
    [
        {"nvidia_memory": 100, "nvidia_memory_factor": 101},
        {"nvidia_core_scaling": 0.001},
        {"iluvatar_core_scaling": 0.001},
        {"ascend_memory": 1, "ascend_memory_factor": 2},
        {"mlu_cards": 128, "mlu_split": 1024},
        {"iluvatar_cards": 128, "iluvatar_core_scaling": 100},
        {"nvidia_cards": 128, "nvidia_core_scaling": 100},
        {"ascend_cards": 128},
    ],
)
def test_a_refusal_advises_only_flags_that_exist(flags: dict[str, Any]) -> None:
    for line in problems_of(lambda: laid_out(**flags)):
        advised = re.findall(r"--([a-z-]+[a-z])", line)
        assert advised
        assert set(advised) <= set(BY_NAME)
