from pathlib import Path
from typing import Any

import pytest

from hami_mock.node.hami_side import HamiSide
from hami_mock.settings.settings import load
from hami_mock.vendors import VENDORS, Role, Vendor
from tests.makers import ASCEND, BY_WORD
from tests.unit.builders import config_file, problems_of, vendor_settings


def names(key: str, **flags: str) -> set[str]:
    """The names that a vendor's resources are registered under."""
    found = vendor_settings(key, {name.replace("_", "-"): v for name, v in flags.items()})
    return {found.names[offer.role].name for offer in found.offers}


def test_without_hami_there_are_the_old_names_only() -> None:
    assert names("mlu") == {"cambricon.com/vmlu"}
    assert names("iluvatar") == {"iluvatar.ai/vgpu", "iluvatar.ai/MR-V100.vCore"}
    assert names("ascend") == {"huawei.com/Ascend910-memory"}


@pytest.mark.parametrize(("key", "model"), [("iluvatar", "BI-V150"), ("ascend", "Ascend310P")])
def test_without_hami_the_model_changes_no_name(key: str, model: str) -> None:
    assert names(key, **{f"{key}_model": model}) == names(key)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, ["huawei.com/Ascend910B3", "huawei.com/Ascend910B3-core",
              "huawei.com/Ascend910B3-memory"]),
        ({"ascend_model": "ascend910b4-1"},
         ["huawei.com/Ascend910B4-1", "huawei.com/Ascend910B4-1-core",
          "huawei.com/Ascend910B4-1-memory"]),
        ({"ascend_resource_memory_name": "a/mem"},
         ["a/mem", "huawei.com/Ascend910B3", "huawei.com/Ascend910B3-core"]),
        ({"mlu_resource_memory_name": "huawei.com/Ascend910-memory"},
         ["huawei.com/Ascend910-memory", "huawei.com/Ascend910B3", "huawei.com/Ascend910B3-core"]),
    ],
)  # fmt: skip
def test_with_hami_names_follow_the_chip_and_what_was_said_wins(
    flags: dict[str, str], expected: list[str]
) -> None:
    assert sorted(names("ascend", hami="on", **flags)) == expected


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.prefix)
def test_with_hami_every_resource_has_hamis_name(vendor: Vendor) -> None:
    flags = {"hami": "on", f"{vendor.prefix}-cards": "1"}
    found = vendor_settings(vendor.prefix, flags)
    assert found.hami is not None
    resources = found.hami.vendor.resources
    expected = {resources.count, resources.memory, resources.cores, resources.percentage} - {""}
    assert {found.names[offer.role].name for offer in found.offers} == expected


@pytest.mark.parametrize("key", ["iluvatar", "ascend"])
def test_a_name_that_is_given_registers_a_resource_without_hami(key: str) -> None:
    flag = {"iluvatar": "iluvatar-memory-name", "ascend": "ascend-resource-core-name"}[key]
    assert "a/b" in names(key, **{flag: "a/b"})


def test_a_bad_name_is_one_problem() -> None:
    (line,) = problems_of(lambda: load({"ascend-resource-name": "a b"}))
    assert line.startswith("--ascend-resource-name: 'a b' is not allowed")


def test_a_name_may_be_what_an_unregistered_resource_would_be_called() -> None:
    assert "cambricon.com/mlu.smlu.vcore" in names(
        "nvidia", resource_cores="cambricon.com/mlu.smlu.vcore"
    )
    (line,) = problems_of(
        lambda: load({"hami": "on", "resource-cores": "cambricon.com/mlu.smlu.vcore"})
    )
    assert "is taken by" in line


def test_the_side_of_hami_has_all_that_a_register_annotation_needs() -> None:
    flags = {"hami": "on", "nvidia-memory-scaling": "1.5", "nvidia-core-scaling": "2"}
    assert vendor_settings("nvidia", flags).hami == HamiSide(
        BY_WORD["NVIDIA"], 10, 1.5, 2.0, "hami-core"
    )
    assert vendor_settings("nvidia", {}).hami is None
    assert vendor_settings("nvidia", {"hami": "on", "nvidia-cards": "0"}).hami is None


@pytest.mark.parametrize(
    ("key", "flags", "mode"),
    [
        ("nvidia", {"nvidia-mode": "mig"}, "mig"),
        ("ascend", {}, "template"),
        ("ascend", {"ascend-mode": "hami-core"}, "hami-core"),
        ("mlu", {}, ""),
    ],
)
def test_the_mode(key: str, flags: dict[str, str], mode: str) -> None:
    side = vendor_settings(key, {"hami": "on", **flags}).hami
    assert side is not None
    assert side.mode == mode


@pytest.mark.parametrize("chip", ASCEND.chips.values(), ids=lambda chip: chip.word)
def test_ascend_has_the_slots_of_its_templates(chip: Any) -> None:
    found = vendor_settings("ascend", {"hami": "on", "ascend-model": chip.word})
    assert found.split == chip.slots
    assert found.hami == HamiSide(chip, chip.slots, 1.0, 1.0, "template")


@pytest.mark.parametrize("flags", [{"hami": "on"}, {"ascend-resource-name": "a/b"}])
def test_a_split_that_is_given_beats_the_templates(flags: dict[str, str]) -> None:
    assert vendor_settings("ascend", flags).split == 4
    assert vendor_settings("ascend", {**flags, "ascend-split": "3"}).split == 3


MIXED = "{key}-groups: [{{model: {first}}}, {{cards: 2, model: {second}}}]"


@pytest.mark.parametrize(
    ("key", "first", "second"),
    [("ascend", "Ascend310P", "Ascend910B3"), ("iluvatar", "MR-V50", "BI-V100")],
)
def test_different_chips_on_one_node_are_an_error_with_hami(
    tmp_path: Path, key: str, first: str, second: str
) -> None:
    path = config_file(tmp_path, MIXED.format(key=key, first=first, second=second))
    load({"config": path})
    (line,) = problems_of(lambda: load({"config": path, "hami": "on"}))
    assert line == (
        f"{path}: {key}-groups: {first} and {second} can't share a node with --hami on: HAMi "
        "names resources after the chip"
    )


def test_different_models_of_one_kind_are_fine(tmp_path: Path) -> None:
    path = config_file(tmp_path, MIXED.format(key="nvidia", first="T4", second="L4"))
    assert load({"config": path, "hami": "on"}).hami


def test_slots_of_cards_that_are_given_out_whole() -> None:
    found = vendor_settings("kunlun-xpu", {"kunlun-xpu-cards": "8"})
    assert found.split == 1
    assert [offer.role for offer in found.offers] == [Role.SLOTS]
