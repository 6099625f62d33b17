from dataclasses import replace

import pytest

from hami_mock.faults.targets import find
from hami_mock.node.fault import On
from tests.unit.builders import cards, laid_out, problems_of

NODE = laid_out(nvidia_cards=3, nvidia_memory=10, ascend_memory=10)
CARDS = NODE.cards
RESOURCES = NODE.resources
UUIDS = {card.name: card.uuid for card in CARDS}


def names(*words: str) -> list[str]:
    return [card.name for card in find(NODE, On.CARDS, words)]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["nvidia/0"], ["nvidia/0"]),
        (["nvidia/2", "nvidia/0"], ["nvidia/0", "nvidia/2"]),
        (["nvidia/0", "nvidia/0", "nvidia/?"], ["nvidia/0", "nvidia/1", "nvidia/2"]),
        (["nvidia"], ["nvidia/0", "nvidia/1", "nvidia/2"]),
        (["nvidia/[01]"], ["nvidia/0", "nvidia/1"]),
        (["*/1"], ["nvidia/1", "mlu/1", "iluvatar/1", "ascend/1"]),
        (["mlu", "ascend/0"], ["mlu/0", "mlu/1", "ascend/0"]),
        (["MLU-*"], ["mlu/0", "mlu/1"]),
        ([UUIDS["iluvatar/1"]], ["iluvatar/1"]),
        ([UUIDS["nvidia/1"][:12] + "*"], ["nvidia/1"]),
        (["all"], [card.name for card in CARDS]),
        (["*"], [card.name for card in CARDS]),
        ([], []),
    ],
)
def test_words_for_cards(words: list[str], found: list[str]) -> None:
    assert names(*words) == found


@pytest.mark.parametrize(
    "word",
    ["nvidia/3", "nvidia/", "NVIDIA/0", "nvidia/00", "gpu", "", "ALL", "nvidia.com/gpu"],
)
def test_a_word_for_no_card_is_an_error_with_the_cards_that_there_are(word: str) -> None:
    (line,) = problems_of(lambda: names("nvidia/0", word))
    assert line == (
        f"there is no card {word!r} on this node: it has nvidia/0, nvidia/1, nvidia/2, mlu/0, "
        "mlu/1, iluvatar/0, iluvatar/1, ascend/0, ascend/1"
    )


def test_every_wrong_word_gets_a_line() -> None:
    lines = problems_of(lambda: names("x", "nvidia/0", "y"))
    assert [line.partition(" on this node")[0] for line in lines] == [
        "there is no card 'x'",
        "there is no card 'y'",
    ]


def test_a_long_list_of_cards_is_cut() -> None:
    many = cards(20)
    (line,) = problems_of(lambda: find(replace(NODE, cards=many), On.CARDS, ["x"]))
    assert line.endswith("nvidia/10, nvidia/11 and 8 more")
    assert "nvidia/12" not in line


def test_on_a_node_without_cards_the_error_says_so() -> None:
    (line,) = problems_of(lambda: find(replace(NODE, cards=()), On.CARDS, ["all"]))
    assert line == "there is no card 'all' on this node: it has none"


def resources(*words: str) -> list[str]:
    return [resource.name for resource in find(NODE, On.RESOURCES, words)]


NVIDIA = [
    "nvidia.com/gpu",
    "nvidia.com/gpucores",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["nvidia.com/gpu"], ["nvidia.com/gpu"]),
        (["nvidia.com/*"], NVIDIA),
        (["nvidia"], NVIDIA),
        (["nvidia.com/gpumem*", "nvidia.com/gpu"], [NVIDIA[0], *NVIDIA[2:]]),
        (["*memory"], ["huawei.com/Ascend910-memory"]),
        (["mlu", "ascend"], ["cambricon.com/vmlu", "huawei.com/Ascend910-memory"]),
        (["all"], [resource.name for resource in RESOURCES]),
    ],
)
def test_words_for_resources(words: list[str], found: list[str]) -> None:
    assert resources(*words) == found


@pytest.mark.parametrize("word", ["gpu", "nvidia.com", "nvidia/0", "NVIDIA.com/gpu", ""])
def test_a_word_for_no_resource_is_an_error_with_the_resources_that_there_are(word: str) -> None:
    (line,) = problems_of(lambda: resources(word, "all"))
    assert line.startswith(f"there is no resource {word!r} on this node: it has nvidia.com/gpu, ")
    assert line.endswith("huawei.com/Ascend910-memory")


IN_STATUS = laid_out(units="status", nvidia_memory=10, ascend_memory=10)


def served(*words: str) -> list[str]:
    found = find(IN_STATUS, On.RESOURCES, words, needs_plugin=True)
    return [resource.name for resource in found]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["nvidia.com/gpu"], ["nvidia.com/gpu"]),
        (["nvidia"], ["nvidia.com/gpu"]),
        (["nvidia.com/gpu*"], ["nvidia.com/gpu"]),
        (["all"], ["nvidia.com/gpu", "cambricon.com/vmlu", "iluvatar.ai/vgpu"]),
    ],
)
def test_where_a_plugin_is_needed_what_stands_in_the_status_is_passed_over(
    words: list[str], found: list[str]
) -> None:
    assert served(*words) == found


@pytest.mark.parametrize("word", ["nvidia.com/gpumem", "ascend", "*Ascend910-memory"])
def test_a_word_for_nothing_else_is_an_error_that_names_it(word: str) -> None:
    (line,) = problems_of(lambda: served("nvidia.com/gpu", word))
    name = word if word.startswith("nvidia") else "huawei.com/Ascend910-memory"
    assert line.startswith(f"{word!r}: {name} has no device plugin")
    assert "--units plugin" in line


def test_what_needs_no_plugin_finds_it() -> None:
    assert len(find(IN_STATUS, On.RESOURCES, ["all"])) == 8
