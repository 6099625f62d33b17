import pytest

from hami_mock.control import checks
from hami_mock.control.checks import arguments_of, read_arguments
from hami_mock.errors import UsageError
from hami_mock.kit.values import SEED, Kind
from hami_mock.node.fault import Call
from hami_mock.node.fault_kinds import VERBS

FAIL, DELAY = ({**must, **may} for must, may in map(arguments_of, (VERBS["fail"], VERBS["delay"])))


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("fail", {"xid": 79, "reason": "it's hot, 90 °C"}),
        ("delay", {"call": "allocate", "seconds": 2, "for": 0.5}),
        ("drop", {}),
    ],
)
def test_arguments_that_are_right(verb: str, arguments: dict[str, object]) -> None:
    read = read_arguments({"targets": ["a", "b*"], **arguments}, *arguments_of(VERBS[verb]))
    assert read == {"targets": ("a", "b*"), **arguments}


def test_arguments_become_what_they_mean() -> None:
    read = read_arguments({"call": "prestart", "seconds": "1m"}, {}, DELAY)
    assert read == {"call": Call.PRESTART, "seconds": 60.0}


@pytest.mark.parametrize(
    ("name", "kind", "values"),
    [
        ("targets", FAIL["targets"], ([], "nvidia/0", [1], None)),
        ("xid", FAIL["xid"], (0, 100_000, 79.5, "x", True)),
        ("reason", FAIL["reason"], ("two\nlines", "x" * 501, 1)),
        ("call", DELAY["call"], ("list", 1, None, [])),
        ("seconds", DELAY["seconds"], (0, -1, 1e9, float("nan"), "2x", True)),
        ("for", DELAY["for"], (0, float("inf"))),
        ("since", checks.NUMBER, (-1, 0.5)),
        ("after", checks.MOMENT, ("now", True)),
        ("values", checks.VALUES, ([], {"nvidia-cards": 4})),
        ("text", checks.TEXT, (1,)),
        ("seed", SEED, (-1, 2**31, "x")),
    ],
)
def test_arguments_that_are_wrong(name: str, kind: Kind[object], values: tuple[object]) -> None:
    for value in values:
        with pytest.raises(UsageError, match=f"^{name}: .* is not allowed: it must be "):
            read_arguments({name: value}, {}, {name: kind})


def test_all_that_is_wrong_with_arguments_is_said_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        read_arguments({"xid": 0, "more": 1}, *arguments_of(VERBS["fail"]))
    assert caught.value.problems == (
        "more: there is no such key",
        "targets: is missing: it must be one or more words for cards or resources",
        "xid: 0 is not allowed: it must be a whole number from 1 to 99999",
    )
