"""Words for nodes of a fleet."""

import pytest

from hami_mock.errors import UsageError
from tests.unit.fleet.rig import A100, MLU, fleet_of


def found(*words: str) -> dict[str, tuple[str, ...] | None]:
    fleet = fleet_of(A100, MLU)
    return {member.name: cards for member, cards in fleet.find(words)}


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("a100-1", ["a100-1"]),
        ("a100", ["a100-0", "a100-1", "a100-2"]),
        ("rack=a100-r0", ["a100-0", "a100-1"]),
        ("zone=eu-2", ["a100-2"]),
        ("zone=eu-*", ["a100-0", "a100-1", "a100-2"]),
        ("pool=m*", ["mlu-0", "mlu-1"]),
        ("*-1", ["a100-1", "mlu-1"]),
        ("m*", ["mlu-0", "mlu-1"]),
        ("all", ["a100-0", "a100-1", "a100-2", "mlu-0", "mlu-1"]),
    ],
)
def test_a_word_means_nodes(word: str, names: list[str]) -> None:
    assert found(word) == dict.fromkeys(names)


def test_a_colon_names_cards_of_each_node() -> None:
    assert found("rack=a100-r0:nvidia/1", "a100-0:0") == {
        "a100-0": ("nvidia/1", "0"),
        "a100-1": ("nvidia/1",),
    }


@pytest.mark.parametrize("words", [("a100-0", "a100-0:0"), ("a100-0:0", "a100-0")])
def test_who_is_named_as_a_whole_is_so(words: tuple[str, ...]) -> None:
    assert found(*words) == {"a100-0": None}


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("a10", "there is no node and no pool 'a10'; did you mean a100?"),
        ("zzz", "there is no node and no pool 'zzz': the pools are a100, mlu"),
        ("rack=a100-r7", "there is no rack 'a100-r7'; did you mean a100-r1"),
        ("rack=zzz", "there is no rack 'zzz': there are a100-r0, a100-r1"),
        ("row=3", "'row=3' is not allowed: it must be pool=…, rack=… or zone=…"),
        ("a100:", "'a100:': name cards after the colon, such as a100:nvidia/0"),
        ("a100-7", "there is no node and no pool 'a100-7'"),
    ],
)
def test_what_names_nothing_is_said(word: str, problem: str) -> None:
    with pytest.raises(UsageError) as error:
        found(word, "mlu")
    assert str(error.value).startswith(problem)
