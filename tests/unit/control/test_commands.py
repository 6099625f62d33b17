import pytest

from hami_mock.control.commands import SINCE, TEXT, VALUES, Operation, acting
from hami_mock.errors import UsageError
from hami_mock.kit.values import SEED, Kind
from hami_mock.node.fault import Call
from hami_mock.node.fault_kinds import VERBS

FAIL, DELAY = (
    {**operation.required, **operation.optional}
    for operation in (acting(VERBS["fail"], print), acting(VERBS["delay"], print))
)


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("fail", {"xid": 79, "reason": "it's hot, 90 °C"}),
        ("delay", {"call": "allocate", "seconds": 2, "for": 0.5}),
        ("drop", {}),
    ],
)
def test_arguments_that_are_right(verb: str, arguments: dict[str, object]) -> None:
    read = acting(VERBS[verb], print).read({"targets": ["a", "b*"], **arguments})
    assert read == {"targets": ("a", "b*"), **arguments}


def test_arguments_become_what_they_mean() -> None:
    read = Operation(print, {}, DELAY).read({"call": "prestart", "seconds": "1m"})
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
        ("since", SINCE["since"], (-1, 0.5)),
        ("after", SINCE["after"], ("now", True)),
        ("values", VALUES, ([], {"nvidia-cards": 4})),
        ("text", TEXT, (1,)),
        ("seed", SEED, (-1, 2**31, "x")),
    ],
)
def test_arguments_that_are_wrong(name: str, kind: Kind[object], values: tuple[object]) -> None:
    for value in values:
        with pytest.raises(UsageError, match=f"^{name}: .* is not allowed: it must be "):
            Operation(print, {}, {name: kind}).read({name: value})


def test_all_that_is_wrong_with_arguments_is_said_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        acting(VERBS["fail"], print).read({"xid": 0, "more": 1})
    assert caught.value.problems == (
        "more: there is no such key",
        "targets: is missing: it must be one or more words for cards or resources",
        "xid: 0 is not allowed: it must be a whole number from 1 to 99999",
    )
