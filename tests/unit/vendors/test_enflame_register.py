import json

import pytest

from hami_mock.hami.errors import Malformed
from hami_mock.hami.register import RegisteredDevice, decode, encode
from hami_mock.vendors.enflame import ENCODING


def cards(
    count: int, slices: int = 6, memory: int = 49152, healthy: bool = True
) -> list[RegisteredDevice]:
    return [
        RegisteredDevice(f"u{i}", slices, memory, 100, "Enflame", index=i, healthy=healthy)
        for i in range(count)
    ]


def test_cards_are_slices_and_profiles() -> None:
    assert json.loads(encode(ENCODING, cards(2))) == {
        "devices": [
            {"index": "0", "minor": "0", "capacity": 6},
            {"index": "1", "minor": "1", "capacity": 6},
        ],
        "profiles": {"1g.8gb": "0", "2g.16gb": "1", "3g.24gb": "2", "6g.48gb": "3"},
    }


def test_the_scheduler_sees_the_cards_under_names_that_it_makes() -> None:
    found = decode(encode(ENCODING, cards(2)), ENCODING, "n1")
    assert [(card.id, card.index, card.count) for card in found] == [
        ("n1-enflame-drs-0", 0, 6),
        ("n1-enflame-drs-1", 1, 6),
    ]
    assert {(card.memory, card.cores, card.type) for card in found} == {(49152, 100, "Enflame")}


def test_cards_that_are_not_healthy_are_left_out() -> None:
    ill, *well = cards(1, healthy=False) + cards(2)[1:]
    assert [card.index for card in decode(encode(ENCODING, [ill, *well]), ENCODING)] == [1]
    with pytest.raises(Malformed, match="no devices"):
        decode(encode(ENCODING, [ill]), ENCODING)


def test_a_profile_without_memory_is_left_out() -> None:
    assert json.loads(encode(ENCODING, cards(1, slices=4, memory=2048)))["profiles"] == {
        "2g.1gb": "0",
        "4g.2gb": "1",
    }


def test_the_plugins_own_text() -> None:
    text = (
        '{"devices":[{"index":"0","minor":"0","capacity":6}],'
        '"profiles":{"1g.6gb":"0","3g.20gb":"1","6g.40gb":"2"}}'
    )
    (card,) = decode(text, ENCODING, "n")
    assert (card.count, card.memory) == (6, 40960)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"profiles":', "not valid JSON"),
        ('{"devices":[{"capacity":6}],"profiles":{}}', "there must be one such as 3g.20gb"),
        ('{"devices":[{"capacity":0}],"profiles":{"1g.1gb":"0"}}', "capacity: 0 must be a number"),
        ('{"devices":[{"capacity":"x"}],"profiles":{"1g.1gb":"0"}}', "capacity: 'x' must be"),
        ('{"devices":[{}],"profiles":{"1g.1gb":"0"}}', "capacity: None must be a number"),
        ('{"devices":{},"profiles":{"1g.1gb":"0"}}', "devices: {} must be a list"),
        ("[]", "the value is in JSON, but HAMi reads Enflame's JSON here"),
    ],
)
def test_what_the_scheduler_refuses_is_malformed(text: str, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        decode(text, ENCODING)
