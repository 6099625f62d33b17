import json

import pytest

from hami_mock.hami import scores
from hami_mock.hami.errors import Malformed
from hami_mock.hami.scores import Place

Places = tuple[Place, ...]


def places(numa: list[int | None], links: list[set[int]], nvlinks: int = 12) -> Places:
    def link(position: int) -> str | None:
        return next((str(i) for i, each in enumerate(links) if position in each), None)

    return tuple(Place(f"GPU-{i}", at, link(i), nvlinks) for i, at in enumerate(numa))


def score(cards: Places, one: int, other: int) -> int:
    table = scores.decode(scores.encode(cards))
    assert table[cards[one].uuid][cards[other].uuid] == table[cards[other].uuid][cards[one].uuid]
    return table[cards[one].uuid][cards[other].uuid]


def test_links_and_numa_nodes_add_up() -> None:
    cards = places([0, 0, 1, 1], [{0, 1, 2}])
    assert score(cards, 0, 1) == 20 + 1200
    assert score(cards, 0, 2) == 10 + 1200
    assert score(cards, 0, 3) == 10
    assert score(cards, 2, 3) == 20


@pytest.mark.parametrize("links", [1, 2, 18])
def test_each_link_counts(links: int) -> None:
    assert score(places([0, 0], [{0, 1}], links), 0, 1) == 20 + 100 * links


@pytest.mark.parametrize("numa", [[None, None], [None, 1], [1, None]])
def test_cards_that_say_nothing_are_near(numa: list[int | None]) -> None:
    assert score(places(numa, []), 0, 1) == 20


def test_two_links_are_not_one() -> None:
    assert score(places([0, 0, 0, 0], [{0, 1}, {2, 3}]), 0, 2) == 20


def test_the_form_is_hamis() -> None:
    one, two = places([0, 1], [])
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
