from pathlib import Path

import pytest

from hami_mock.node.cards import CardGroup
from hami_mock.settings.settings import load
from hami_mock.vendors import VENDORS
from tests.unit.builders import config_file, problems_of, vendor_settings


def groups_of(path: Path, text: str, key: str = "nvidia", **flags: str) -> tuple[CardGroup, ...]:
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    return vendor_settings(key, {"config": config_file(path, text), **named}).groups


def test_the_simple_options_make_one_group() -> None:
    (group,) = vendor_settings("nvidia", {"nvidia-cards": "3", "nvidia-model": "t4"}).groups
    assert (group.cards, group.model.name, group.memory) == (3, "T4", 15360)
    assert group.numa == (None, None, None)
    assert group.links == ()


def test_memory_overrides_the_models() -> None:
    (group,) = vendor_settings("nvidia", {"nvidia-memory": "1000"}).groups
    assert group.memory == 1000


def test_no_cards_make_no_group() -> None:
    assert vendor_settings("nvidia", {"nvidia-cards": "0"}).groups == ()


def test_groups_of_the_file_have_models_memory_numa_and_links(tmp_path: Path) -> None:
    text = """
    nvidia:
      groups:
        - {cards: 4, model: a100-sxm4-80gb, numa: [0, 0, 1, 1], nvlink: [[0, 1], [2, 3]]}
        - {cards: 2, model: T4, numa: 1, memory: 8000}
        - {model: L4}
        - {}
    """
    first, second, third, fourth = groups_of(tmp_path, text)
    assert (first.model.name, first.memory, first.cards) == ("A100-SXM4-80GB", 81920, 4)
    assert first.numa == (0, 0, 1, 1)
    assert first.links == (frozenset({0, 1}), frozenset({2, 3}))
    assert (second.model.name, second.memory, second.numa) == ("T4", 8000, (1, 1))
    assert (third.model.name, third.cards, third.numa) == ("L4", 1, (None,))
    assert (fourth.model.name, fourth.cards) == ("V100-SXM2-32GB", 1)


@pytest.mark.parametrize("key", [vendor.prefix for vendor in VENDORS])
def test_every_vendor_can_have_groups(tmp_path: Path, key: str) -> None:
    found = groups_of(tmp_path, f"{key}: {{groups: [{{cards: 3}}, {{cards: 1}}]}}", key)
    assert [group.cards for group in found] == [3, 1]


def test_an_empty_list_of_groups_is_no_cards(tmp_path: Path) -> None:
    assert groups_of(tmp_path, "nvidia-groups: []") == ()


GROUPS = """
nvidia-groups:
  - {cards: 4, model: A100-SXM4-80GB, numa: [0, 0, 1, 1], nvlink: [[0, 1], [2, 3]]}
  - {cards: 2, model: T4}
"""


def test_a_flag_for_cards_takes_the_first_of_the_files_groups(tmp_path: Path) -> None:
    (only,) = groups_of(tmp_path, GROUPS, nvidia_cards="3")
    assert (only.model.name, only.numa) == ("A100-SXM4-80GB", (0, 0, 1))
    assert only.links == (frozenset({0, 1}), frozenset({2}))
    first, second = groups_of(tmp_path, GROUPS, nvidia_cards="5")
    assert (first.cards, second.cards, second.model.name) == (4, 1, "T4")
    assert len(groups_of(tmp_path, GROUPS, nvidia_cards="6")) == 2
    assert groups_of(tmp_path, GROUPS, nvidia_cards="0") == ()


def test_a_variable_for_cards_takes_the_first_of_the_files_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAMI_MOCK_NVIDIA_CARDS", "2")
    (only,) = groups_of(tmp_path, GROUPS)
    assert (only.cards, only.model.name, only.numa) == (2, "A100-SXM4-80GB", (0, 0))


def test_more_cards_than_the_groups_have_are_refused(tmp_path: Path) -> None:
    (line,) = problems_of(lambda: groups_of(tmp_path, GROUPS, nvidia_cards="7"))
    assert line == (
        "--nvidia-cards: 7 is not allowed: it must be at most 6, the number of cards in "
        f"{tmp_path}/config.yaml: nvidia-groups: list more there"
    )


@pytest.mark.parametrize("flag", [{"nvidia_model": "T4"}, {"nvidia_memory": "777"}])
def test_a_flag_for_the_model_does_not_drop_the_files_groups(
    tmp_path: Path, flag: dict[str, str]
) -> None:
    (line,) = problems_of(lambda: groups_of(tmp_path, GROUPS, **flag))
    name = next(iter(flag)).replace("_", "-")
    assert line == (
        f"--{name}: {tmp_path}/config.yaml: nvidia-groups lists the cards: change them there"
    )


def test_a_section_may_replace_the_groups_of_the_file(tmp_path: Path) -> None:
    text = GROUPS + 'nodes: [{match: "*", nvidia: {cards: 3, model: T4}}]'
    (only,) = groups_of(tmp_path, text, node_name="any")
    assert (only.cards, only.model.name) == (3, "T4")
    (only,) = groups_of(tmp_path, text, node_name="any", nvidia_cards="9", nvidia_model="L4")
    assert (only.cards, only.model.name) == (9, "L4")


def test_a_flag_for_this_nodes_cards_need_not_go_with_the_groups_of_others(tmp_path: Path) -> None:
    text = "nodes: [{match: other, nvidia-groups: [{cards: 1}], vendors: nvidia}]"
    flags = {"nvidia_cards": "4", "nvidia_model": "T4", "mlu_cards": "1"}
    (only,) = groups_of(tmp_path, text, node_name="mine", **flags)
    assert (only.cards, only.model.name) == (4, "T4")
    assert len(problems_of(lambda: groups_of(tmp_path, text, node_name="other", **flags))) == 3


def vendors_with_cards(flags: dict[str, str]) -> list[str]:
    return [found.vendor.prefix for found in load(flags).vendors if found.groups]


def test_vendors_restricts_the_node(tmp_path: Path) -> None:
    assert vendors_with_cards({"vendors": "nvidia"}) == ["nvidia"]
    assert vendors_with_cards({"vendors": "mlu, nvidia"}) == ["nvidia", "mlu"]
    assert vendors_with_cards({"vendors": "cambricon"}) == ["mlu"]
    assert vendors_with_cards({"vendors": "hygon", "hygon-cards": "1"}) == ["hygon"]
    for value in ("nvidia", "[nvidia]", "nvidia,hygon"):
        path = config_file(tmp_path, f"vendors: {value}\nnvidia-cards: 4")
        assert vendors_with_cards({"config": path}) == ["nvidia"]


def test_a_flag_for_vendors_is_stronger_than_the_cards_of_the_file(tmp_path: Path) -> None:
    path = config_file(tmp_path, "mlu-cards: 4")
    assert vendors_with_cards({"config": path, "vendors": "nvidia"}) == ["nvidia"]


def test_cards_of_a_vendor_that_is_left_out_are_an_error(tmp_path: Path) -> None:
    flags = {"vendors": "nvidia", "mlu-cards": "2", "ascend-cards": "0"}
    assert problems_of(lambda: load(flags)) == (
        "--mlu-cards: --vendors excludes mlu: add it there, or remove this",
    )
    path = config_file(tmp_path, "vendors: nvidia\nmlu: {groups: [{cards: 1}]}")
    (line,) = problems_of(lambda: load({"config": path}))
    assert line.startswith(f"{path}: mlu.groups: {path}: vendors excludes mlu")


def test_groups_of_a_stronger_layer_replace_the_simple_options(tmp_path: Path) -> None:
    text = """
    nvidia: {cards: 8, model: T4}
    nodes: [{match: "*", nvidia-groups: [{cards: 1}, {cards: 2}]}]
    """
    found = groups_of(tmp_path, text, node_name="any")
    assert [(group.cards, group.model.name) for group in found] == [
        (1, "V100-SXM2-32GB"),
        (2, "V100-SXM2-32GB"),
    ]


@pytest.mark.parametrize("simple", ["cards: 1", "model: T4", "memory: 100"])
def test_groups_and_simple_options_in_one_place_are_an_error(tmp_path: Path, simple: str) -> None:
    text = f"nvidia: {{groups: [{{cards: 1}}], {simple}}}"
    (line,) = problems_of(lambda: groups_of(tmp_path, text))
    assert f"nvidia.{simple.partition(':')[0]}: nvidia-groups lists the cards" in line


@pytest.mark.parametrize(
    ("group", "parts"),
    [
        ("{cards: 2, numa: -1}", [".numa: -1 is not allowed", "0 to 63"]),
        ("{cards: 2, numa: 64}", [".numa: 64 is not allowed", "0 to 63"]),
        ("{cards: 2, numa: [0]}", [".numa: [0] is not allowed", "one for each card"]),
        ("{cards: 2, numa: [0, 1, 2]}", [".numa: [0, 1, 2] is not allowed"]),
        ("{cards: 2, numa: [0, 99]}", [".numa: [0, 99] is not allowed"]),
        ("{numa: []}", [".numa: [] is not allowed"]),
        ("{numa: true}", [".numa: True is not allowed"]),
        ("{cards: 2, nvlink: [[0, 2]]}", [".nvlink: [[0, 2]] is not allowed", "from 0 to 1"]),
        ("{cards: 2, nvlink: [[-1, 0]]}", [".nvlink: [[-1, 0]] is not allowed"]),
        ("{cards: 4, nvlink: [[0, 1], [1, 2]]}", ["each card in at most one"]),
        ("{cards: 2, nvlink: [[0, 0]]}", [".nvlink: [[0, 0]] is not allowed"]),
        ("{model: T5}", [".model: 'T5' is not allowed", "NVIDIA model", "T4"]),
        ("{model: qqqqqq}", [".model: 'qqqqqq' is not allowed", "`hami-mock models`"]),
        ("{model: MLU590}", [".model: 'MLU590' is not allowed", "NVIDIA model"]),
    ],
)
def test_a_bad_group_is_an_error_that_names_it(
    tmp_path: Path, group: str, parts: list[str]
) -> None:
    text = f"nvidia-groups: [{{cards: 1}}, {group}]"
    (line,) = problems_of(lambda: groups_of(tmp_path, text))
    assert "config.yaml: nvidia-groups[1]" in line
    assert all(part in line for part in parts)


def test_each_mistake_in_the_groups_gets_a_line(tmp_path: Path) -> None:
    text = "nvidia-groups: [{model: T5, numa: 99, nvlink: [[7]]}, {model: T6}]"
    assert len(problems_of(lambda: groups_of(tmp_path, text))) == 4


def test_more_cards_than_a_node_can_have_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("nvidia-groups: [{cards: 100}, {cards: 29}]")
    (line,) = problems_of(lambda: load({"config": str(file)}))
    assert line == (
        f"{file}: nvidia-groups: 129 is not allowed: it must be at most 128 cards in all groups "
        "together"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"nvidia-mig": "1g.5gb"}, "left out: cards of model V100-SXM2-32GB can't be cut"),
        ({"nvidia-model": "A30", "nvidia-mig": "1g.5gb"}, "profiles of A30: 1g.6gb, 1g.6gb+me"),
        ({"nvidia-model": "A30", "nvidia-mig": "4g.24gb,1g.6gb"}, "that fit on one A30 together"),
    ],
)
def test_what_cards_can_not_be_cut_into_is_refused(options: dict[str, str], expected: str) -> None:
    (problem,) = problems_of(lambda: load(options))
    assert "--nvidia-mig" in problem
    assert expected in problem


def test_cards_of_a_group_are_cut(tmp_path: Path) -> None:
    text = "nvidia-groups: [{model: A30, mig: [2g.12gb, 1g.6gb]}, {model: T4}]"
    assert [group.cut for group in groups_of(tmp_path, text)] == [("2g.12gb", "1g.6gb"), None]
