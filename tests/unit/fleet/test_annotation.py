"""Faults in a node's annotation: what outlives the process."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.fleet.faults import read
from tests.unit.fleet.rig import fleet_of


def restarted(*acts: tuple[str, str, dict[str, Any]], seconds: float | None = None) -> Any:
    """Return what a fleet that is started anew knows of what was done to the one before."""
    before, after = fleet_of(), fleet_of()
    for verb, word, given_ in acts:
        before.act(verb, before.find([word]), given_, seconds)
    member = before.members["a100-0"]
    text = before.annotation(member, before.state(member))
    again = after.members["a100-0"]
    after.restore(again, text)
    assert after.annotation(again, after.state(again)) == text
    return member, again, after, text


def told(member: Any) -> list[tuple[str, frozenset[str], str]]:
    return [(fault.kind.verb, fault.targets, fault.text) for fault in member.faults]


@pytest.mark.parametrize(
    "acts",
    [
        (("fail", "a100-0", {"xid": 79, "reason": "test"}),),
        (("fail", "a100-0:0", {"reason": "a"}), ("lose", "a100-0:1", {})),
        (("degrade", "a100-0:1", {"reason": "thermal"}), ("stop-node", "a100-0", {})),
        (("delay", "a100-0:nvidia.com/gpu", {"call": "allocate", "seconds": 2.0}),),
        (("down", "a100-0:nvidia.com/gpumem", {}),),
    ],
)
def test_a_fleet_that_is_started_anew_knows_all_faults(acts: Any) -> None:
    before, after, *_ = restarted(*acts)
    assert told(before) == told(after)
    assert told(before)


def test_their_ends_are_known_too() -> None:
    *_, fleet, _ = restarted(("fail", "a100-0", {}), seconds=30)
    assert fleet.end_overdue() == 1030


def test_the_same_of_several_cards_is_written_once() -> None:
    *_, text = restarted(("fail", "a100-0", {"xid": 79}))
    (row,) = json.loads(text)
    assert row["targets"] == ["nvidia/0", "nvidia/1"]
    assert row["verb"] == "fail"


def test_a_node_without_faults_has_none() -> None:
    *_, text = restarted()
    assert text is None


@pytest.mark.parametrize(
    "row",
    [
        {"verb": "recover", "targets": ["nvidia/0"]},
        {"verb": "fail", "targets": ["nvidia/9"]},
        {"verb": "fail", "targets": "nvidia/0"},
        {"verb": "fail", "targets": ["nvidia/0"], "details": {"xid": "x"}},
        {"verb": "fail", "targets": ["nvidia/0"], "details": {"no": 1}},
        {"verb": "fail", "targets": ["nvidia/0"], "until": True},
        {"verb": "fail", "targets": ["nvidia/0"], "reason": "two\nlines"},
        {"verb": ["fail"], "targets": ["nvidia/0"]},
        7,
    ],
)
def test_what_makes_no_sense_is_passed_over(row: Any) -> None:
    fleet = fleet_of()
    state = fleet.state(fleet.members["a100-0"])
    good = {"verb": "fail", "targets": ["nvidia/1"]}
    (kept,) = read(json.dumps([row, good]), state)
    assert [state.name_of(target) for target in kept.fault.targets] == ["nvidia/1"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
_ROW = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("verb", "targets", "details", "until", "reason"), _JSON)
)


@given(st.text() | st.builds(json.dumps, st.lists(_ROW | _JSON)))
def test_anybody_may_have_written_it(text: str) -> None:
    fleet = fleet_of()
    for fault, until in read(text, fleet.state(fleet.members["a100-0"])):
        assert fault.targets
        assert until is None or isinstance(until, int | float)
