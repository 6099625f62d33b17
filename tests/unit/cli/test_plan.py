import pytest

from hami_mock.cli.plan import plan_rows, plan_table
from tests.unit.builders import laid_out

KEYS = ["resource", "count", "unit", "cards", "bytes", "limit", "warnings"]


def test_a_row_has_exactly_the_keys_that_were_promised() -> None:
    rows = plan_rows(laid_out(), None)
    assert [list(row) for row in rows] == [KEYS] * 8


def test_a_row_has_the_numbers_of_its_resource() -> None:
    rows = {row["resource"]: row for row in plan_rows(laid_out(), (1, 35))}
    assert rows["nvidia.com/gpumem"] == {
        "resource": "nvidia.com/gpumem",
        "count": 65536,
        "unit": "1 MiB",
        "cards": 2,
        "bytes": 65536 * 16,
        "limit": 4194304,
        "warnings": [],
    }
    assert rows["cambricon.com/vmlu"]["unit"] == "slot"
    assert rows["nvidia.com/gpucores"]["unit"] == "1 %"


@pytest.mark.parametrize(("version", "warned"), [((1, 35), 0), ((1, 36), 2), (None, 2)])
def test_warnings_depend_on_the_kubelets_version(
    version: tuple[int, int] | None, warned: int
) -> None:
    assert sum(bool(row["warnings"]) for row in plan_rows(laid_out(), version)) == warned


def test_the_table_shows_each_resource_with_its_share_of_the_limit() -> None:
    node = laid_out()
    lines = list(plan_table(node, plan_rows(node, (1, 35))))
    assert lines[0] == "Node node-a would register:"
    assert lines[2].split() == [
        "RESOURCE",
        "COUNT",
        "UNIT",
        "CARDS",
        "LIST",
        "BYTES",
        "OF",
        "4",
        "MiB",
    ]
    assert lines[5].split() == ["nvidia.com/gpumem", "65536", "1", "MiB", "2", "1048576", "25.0%"]
    assert len(lines) == 3 + 8


def test_the_table_ends_with_the_warnings() -> None:
    node = laid_out()
    lines = list(plan_table(node, plan_rows(node, None)))
    assert [line.split(": ")[:2] for line in lines if line.startswith("warning")] == [
        ["warning", "nvidia.com/gpumem"],
        ["warning", "huawei.com/Ascend910-memory"],
    ]


def test_a_node_without_cards_says_so() -> None:
    node = laid_out(nvidia_cards=0, mlu_cards=0, iluvatar_cards=0, ascend_cards=0)
    lines = list(plan_table(node, plan_rows(node, None)))
    assert lines[-1] == "nothing: no cards are configured for this node"
