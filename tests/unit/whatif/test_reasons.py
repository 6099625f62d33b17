import pytest

from hami_mock.whatif.reasons import grouped, meaning_of, telling, words_of
from hami_mock.whatif.selecting import NO_KEY, SPREAD
from tests.unit.whatif.outcomes import refusal


def test_room_on_the_right_nodes_says_more_than_a_thousand_wrong_ones() -> None:
    assert telling(refusal(0, {"CardTypeMismatch": 1000, "CardInsufficientMemory": 2})) == (
        "CardInsufficientMemory"
    )


def test_only_nodes_that_could_take_the_pod_are_asked_if_there_are_any() -> None:
    near = {"CardInsufficientCore": 1}
    one = refusal(0, {"Insufficient cpu": 500, "CardInsufficientCore": 1})._replace(near=near)
    assert telling(one) == "CardInsufficientCore"


def test_where_no_node_is_of_the_right_kind_the_kind_is_the_reason() -> None:
    told = {"CardTypeMismatch": 3, "node(s) had untolerated taint(s)": 5}
    assert telling(refusal(0, told)) == "node(s) had untolerated taint(s)"


def test_of_equal_reasons_the_first_by_name_counts_whatever_their_order() -> None:
    assert telling(refusal(0, {"b": 2, "a": 2})) == telling(refusal(0, {"a": 2, "b": 2})) == "a"


def test_groups_have_all_pods_and_the_largest_is_first() -> None:
    told = [{"Insufficient cpu": 1}, {"CardInsufficientMemory": 1}, {"CardInsufficientMemory": 2}]
    groups = grouped([refusal(number, each) for number, each in enumerate(told)])
    assert [(each.reason, len(each.refusals)) for each in groups] == [
        ("CardInsufficientMemory", 2),
        ("Insufficient cpu", 1),
    ]
    assert groups[0].refusals[0].number == 1


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Insufficient cpu", "CPU"),
        ("Insufficient nvidia.com/gpu", "nvidia.com/gpu"),
        ("CardTimeSlicingExhausted", "slots of cards"),
        ("node(s) didn't match the requested node name", "the node that it names"),
        (NO_KEY, "nodes with the label that it is spread over"),
        (SPREAD, "room where it is spread evenly"),
        ("a reason of tomorrow", "a reason of tomorrow"),
        ("", "any node at all"),
    ],
)
def test_reasons_in_words(reason: str, words: str) -> None:
    assert words_of(reason) == words


def test_what_hami_means_is_what_the_doctor_says() -> None:
    assert meaning_of("CardTimeSlicingExhausted") == "every slot of the card is taken"
    assert meaning_of("Insufficient cpu") == ""
