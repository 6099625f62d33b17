import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.cli.flags import log_level_of_go_flags, normalise


@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize("name", ["resource-mem", "resource_mem"])
@pytest.mark.parametrize("value", ["", "=x", "=", "=a_b", "=a=b", "=-x_y", "=--x_y", "=two\nlines"])
def test_a_long_flag_gets_two_dashes_and_no_underscore_and_keeps_its_value(
    dashes: str, name: str, value: str
) -> None:
    assert normalise([f"{dashes}{name}{value}"]) == [f"--resource-mem{value}"]


@pytest.mark.parametrize(
    "argument",
    ["", "-", "--", "-1", "-1.5", "-.5", "-10_000", "-v", "-v=4", "-o", "json", "-o=json", "-h",
     "/tmp/a_b", "plan", "a_b", "---x", "x-y_z=1", "4"],
)  # fmt: skip
def test_everything_else_is_left_alone(argument: str) -> None:
    assert normalise([argument]) == [argument]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["-log_dir", "/tmp/a_b"], ["--log-dir", "/tmp/a_b"]),
        (["-v=4", "-logtostderr"], ["-v=4", "--logtostderr"]),
        (["-v", "4"], ["-v", "4"]),
        (["-o", "json"], ["-o", "json"]),
        (["--nvidia-cards", "-1"], ["--nvidia-cards", "-1"]),
        ([], []),
    ],
)
def test_a_value_after_a_space_stays_where_it_is(before: list[str], after: list[str]) -> None:
    assert normalise(before) == after


@given(st.lists(st.text(max_size=12)))
def test_what_is_normal_stays_so(arguments: list[str]) -> None:
    once = normalise(arguments)
    assert normalise(once) == once
    assert len(once) == len(arguments)


@pytest.mark.parametrize(
    ("debug", "verbosity", "level"),
    [
        (None, None, None),
        ("true", None, "debug"),
        ("1", None, "debug"),
        ("false", None, None),
        ("False", None, None),
        ("0", None, None),
        (None, "4", "debug"),
        (None, "10", "debug"),
        (None, "9" * 5000, "debug"),
        (None, "0" * 5000 + "4", "debug"),
        (None, "0" * 5000 + "3", None),
        (None, "3", None),
        (None, "0", None),
        (None, "-1", None),
        (None, "x", None),
        (None, "", None),
        (None, "٤", None),
        ("false", "5", "debug"),
        ("true", "0", "debug"),
    ],
)
def test_debug_and_v_ask_for_a_level(
    debug: str | None, verbosity: str | None, level: str | None
) -> None:
    assert log_level_of_go_flags(debug, verbosity) == level
