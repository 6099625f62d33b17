import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.errors import UsageError
from hami_mock.node.load_reader import read
from hami_mock.node.load_shapes import Moment
from tests.unit.builders import problems_of

PLACE = "pod default/p: annotation hami-mock.io/load"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "there is no shape ''"),
        ("abc", "there is no shape 'abc'"),
        ("sinus:50", "did you mean sine?"),
        ("101", "'101' isn't within 0 to 100"),
        ("60-20", "'60-20' isn't within 0 to 100"),
        ("-5", "there is no shape '-5'"),
        ("idle:80", "idle has no 'utilization'"),
        ("steady:80:10m", "'10m' is one too many"),
        ("sine:20:30", "'30' is one too many"),
        ("sine:20:utilization=30", "'utilization' is given twice"),
        ("sine:20:perod=3m", "sine has no 'perod'; did you mean period?"),
        ("sine:period=0", "'0' is not from 1s to 7d"),
        ("sine:period=soon", "'soon' is not a time such as"),
        ("burst:5-95:10s:part=20s", "its part is longer than its period"),
        ("80:memory=200", "'200' isn't within 0 to 100"),
        ("[]", "a schedule is a list with 1 to 500 entries"),
        ("[{time: 1h}]", "must have time and utilization"),
        ("[{time: 1h, utilization: 80, x: 1}]", "and nothing else"),
        ("[{time: 1h, utilization: true}]", "True is neither a percentage nor a range"),
        ("[{time: nope, utilization: 1}]", "'nope' is not a time"),
        ("{schedule: [{time: 1h, utilization: 1}], repeat: 0}", "repeat must be true, false or a"),
        ("[", "while parsing"),
        ("{shape: nope}", "there is no shape 'nope'"),
        ("x" * 10_001, "more than 10000 characters"),
        (True, "there is no shape ''"),
        (None, "there is no shape ''"),
        (float("nan"), "there is no shape 'nan'"),
    ],
)
def test_what_is_wrong_is_said_with_the_place_the_value_and_what_to_write(
    value: object, why: str
) -> None:
    (problem,) = problems_of(lambda: read(value, PLACE))
    assert problem.startswith(f"{PLACE}: ")
    assert why in problem
    assert "write a percentage (80), a range (20-60), a shape" in problem
    assert len(problem) < 1500


words = st.sampled_from(
    ["80", "20-60", "sine", "idle", ":", "=", "-", "memory", "part", "10m", "[", "]", "{", "}",
     "time: 1h", "utilization: 80", ",", "schedule: ", "repeat: 2", "1e9", "%", "\ud800", " "]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(words).map("".join)))
def test_any_text_is_a_load_or_refused(text: str) -> None:
    try:
        shape = read(text, PLACE)
    except UsageError:
        return
    assert 0 <= shape.value(Moment(12345, 67890, 5)) <= 100
