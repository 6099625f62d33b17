import json
import logging

import pytest

from hami_mock.errors import NotAssigned
from hami_mock.hami.assignment import AssignedDevice
from hami_mock.hami.errors import Malformed
from hami_mock.vendors.handout import Container, Given, hand_out
from tests.makers import AMD, BY_WORD
from tests.unit.builders import cards

UNITS = "hami.io/amd-cu-allocated"
FIRST, SECOND = cards(2, AMD)
A, B = FIRST.uuid, SECOND.uuid


def given(*asked: tuple[str, int], own: str = "", others: tuple[str, ...] = ()) -> Given:
    """What a container gets that asks for so many units of each card."""
    known = {A: FIRST, B: SECOND}
    return hand_out(
        Container(
            BY_WORD["AMD"],
            {UNITS: own} if own else {},
            0,
            tuple(AssignedDevice(uuid, "AMD Instinct MI300X", 4096, n) for uuid, n in asked),
            tuple(known[uuid].visible_as for uuid, _ in asked),
            unique="x",
            cards=tuple(known[uuid] for uuid, _ in asked),
            shared=others,
        )
    )


def test_a_container_gets_the_first_units_of_a_card() -> None:
    found = given((A, 76))
    assert found.variables == {
        "ROCR_VISIBLE_DEVICES": A,
        "HIP_DEVICE_MEMORY_LIMIT": "4096m",
        "HSA_CU_MASK": "0:0-75",
    }
    assert json.loads(found.annotations[UNITS]) == {A: "0-75"}


def test_masks_are_in_the_order_of_the_visible_cards() -> None:
    found = given((B, 304), (A, 1))
    assert found.variables["ROCR_VISIBLE_DEVICES"] == f"{B},{A}"
    assert found.variables["HSA_CU_MASK"] == "0:0-303;1:0"
    assert json.loads(found.annotations[UNITS]) == {A: "0", B: "0-303"}


def test_what_others_have_is_passed_over() -> None:
    others = (json.dumps({A: "0-3,8"}), json.dumps({A: "10-12", B: "0-303"}), "")
    assert given((A, 8), others=others).variables["HSA_CU_MASK"] == "0:4-7,9,13-15"


def test_the_second_container_of_a_pod_adds_to_what_the_first_has() -> None:
    first = given((A, 4)).annotations[UNITS]
    second = given((A, 2), (B, 1), own=first)
    assert second.variables["HSA_CU_MASK"] == "0:4-5;1:0"
    assert json.loads(second.annotations[UNITS]) == {A: "0-5", B: "0"}


@pytest.mark.parametrize(("asked", "free"), [(305, 304), (0, 304), (-1, 304)])
def test_a_card_gives_at_most_what_it_has_and_at_least_one(asked: int, free: int) -> None:
    told = f"HAMi assigned {asked} compute units of card 0, and {free} of its 304 are free"
    with pytest.raises(NotAssigned, match=told):
        given((A, asked))


def test_a_card_that_others_have_is_full() -> None:
    with pytest.raises(NotAssigned, match="and 3 of its 304 are free"):
        given((A, 4), others=(json.dumps({A: "0-300"}),))


@pytest.mark.parametrize(
    "value",
    ["{", "[]", '{"a": 5}', '{"a": "x"}', '{"a": "5-2"}', '{"a": "0-99999"}', '{"a": "-1"}'],
)
def test_what_can_not_be_read_is_refused_of_the_pod_and_passed_over_of_others(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Malformed):
        given((A, 1), own=value)
    with caplog.at_level(logging.WARNING):
        assert given((A, 1), others=(value,)).variables["HSA_CU_MASK"] == "0:0"
    assert f"{UNITS} of another pod is ignored" in caplog.text


def test_spaces_and_empty_lists_are_fine() -> None:
    others = (json.dumps({A: " 0 - 1 , ,3", B: ""}),)
    assert given((A, 2), (B, 1), others=others).variables["HSA_CU_MASK"] == "0:2,4;1:0"
