"""Whatever stands in a scenario's file: it is played, or what is wrong with it is said."""

from itertools import islice
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hami_mock.errors import UsageError
from hami_mock.faults.actions import MOST_FAULTS
from hami_mock.faults.scenario import Scenario
from hami_mock.faults.scenario_reader import parse
from hami_mock.faults.scenario_schema import LOOP_KEYS, STEP_KEYS, TOP_KEYS
from hami_mock.faults.timeline import moments
from hami_mock.node.fault_kinds import VERBS, parameter_names
from hami_mock.node.state import NodeState
from tests.unit.builders import laid_out
from tests.unit.faults.scripts import FILE, player_of, steps

NODE = laid_out()
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.dates()
    | st.binary(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)
LIKELY = st.sampled_from(
    [
        "all",
        "nvidia",
        "nvidia/0",
        "nvidia.com/gpu",
        "forever",
        "50%",
        "10ms",
        "1m",
        "7d",
        1,
        0,
        10**6,
    ]
)
KEYS = st.sampled_from(
    sorted({*TOP_KEYS, *LOOP_KEYS, *STEP_KEYS, *VERBS, *parameter_names(), "steps", "loop"})
)


def mapping(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[Any, Any]]:
    return st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=6)


WRONG_STEPS = mapping(LIKELY | VALUES | st.lists(mapping(LIKELY | VALUES), max_size=3))
DOCUMENTS = st.builds(
    lambda top, own: {**top, "steps": own},
    mapping(LIKELY | VALUES),
    st.lists(steps() | WRONG_STEPS, max_size=4) | VALUES,
)


def check(text: str) -> None:
    problems: tuple[str, ...] = (FILE,)
    try:
        play(parse(text, FILE, NODE))
    except UsageError as error:
        problems = error.problems
    assert problems[0].startswith(FILE)


def play(made: Scenario) -> None:
    """Play the beginning, and undo it: no step of a scenario that was read for a node fails there.

    Its mistake would not name the file.
    """
    state = NodeState(NODE)
    player = player_of(made, state)
    there = {*state.cards, *state.resources}
    for moment in islice(moments(made), 50):
        player.play(moment)
        assert all(fault.targets <= there for fault in state.faults)
        assert len(state.faults) <= MOST_FAULTS
    player.undo_all()
    assert state.faults == ()


@given(st.text())
@example("steps: &steps [{loop: 2, steps: *steps}]")
@example("? [a]\n: b")
@example("steps: [{fail: nvidia, xid: 0x" + "f" * 90 + "}]")
def test_any_text_is_a_scenario_or_its_mistakes(text: str) -> None:
    check(text)


@settings(max_examples=150)
@given(DOCUMENTS)
def test_any_document_is_a_scenario_or_its_mistakes(document: dict[Any, Any]) -> None:
    check(yaml.safe_dump(document))
