import json

import pytest

from hami_mock.hami import scores
from hami_mock.hami.errors import Malformed
from hami_mock.node.cards import Card, CardGroup, make_cards
from hami_mock.vendors import NVIDIA, catalog


def some_cards(
    numa: list[int | None], links: list[set[int]], model: str = "A100-SXM4-80GB"
) -> tuple[Card, ...]:
    found = catalog.find("nvidia", model)
    assert found is not None
    group = CardGroup(found, found.memory, tuple(numa), tuple(map(frozenset, links)))
    return make_cards("n", NVIDIA, [group])


def score(cards: tuple[Card, ...], one: int, other: int) -> int:
    table = scores.decode(scores.encode(cards))
    assert table[cards[one].uuid][cards[other].uuid] == table[cards[other].uuid][cards[one].uuid]
    return table[cards[one].uuid][cards[other].uuid]


def test_links_and_numa_nodes_add_up() -> None:
    cards = some_cards([0, 0, 1, 1], [{0, 1, 2}])
    assert score(cards, 0, 1) == 20 + 1200
    assert score(cards, 0, 2) == 10 + 1200
    assert score(cards, 0, 3) == 10
    assert score(cards, 2, 3) == 20


@pytest.mark.parametrize(("model", "links"), [("V100-SXM2-32GB", 2), ("B200", 18), ("L40S", 1)])
def test_the_number_of_links_is_the_generations(model: str, links: int) -> None:
    assert score(some_cards([0, 0], [{0, 1}], model), 0, 1) == 20 + 100 * links


@pytest.mark.parametrize("numa", [[None, None], [None, 1], [1, None]])
def test_cards_that_say_nothing_are_near(numa: list[int | None]) -> None:
    assert score(some_cards(numa, []), 0, 1) == 20


def test_two_links_are_not_one() -> None:
    assert score(some_cards([0, 0, 0, 0], [{0, 1}, {2, 3}]), 0, 2) == 20


def test_the_form_is_hamis() -> None:
    one, two = some_cards([0, 1], [])
    assert json.loads(scores.encode((one, two))) == [
        {"uuid": one.uuid, "score": {two.uuid: 10}},
        {"uuid": two.uuid, "score": {one.uuid: 10}},
    ]
    assert scores.encode((one,)) == f'[{{"uuid":"{one.uuid}","score":{{}}}}]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not valid JSON"),
        ("[1]", "card 0: 1 must be an object"),
        ('[{"score":[]}]', "card 0: score: .* must be an object"),
        ('[{"uuid":"a"},{"uuid":"b","score":{"a":1.5}}]', "card 1: score: a: 1.5 must be a whole"),
    ],
)
def test_a_malformed_value_says_where(text: str, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        scores.decode(text)
