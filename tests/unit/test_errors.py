import pytest

from hami_mock.errors import UnhealthyDevice, UnknownDevice, UsageError


@pytest.mark.parametrize(
    ("given", "problems"),
    [("one", ("one",)), (["one", "two"], ("one", "two")), ({"one": None}, ("one",))],
)
def test_a_usage_error_has_one_line_for_each_problem(
    given: str | list[str], problems: tuple[str, ...]
) -> None:
    error = UsageError(given)
    assert error.problems == problems
    assert str(error) == "\n".join(problems)


def test_an_error_about_a_device_names_resource_device_and_card() -> None:
    assert str(UnknownDevice("a/b", "x")) == "a/b: there is no device 'x'"
    expected = "a/b: device 'x' is on card GPU-1, which is unhealthy"
    assert str(UnhealthyDevice("a/b", "x", "GPU-1")) == expected
