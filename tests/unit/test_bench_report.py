"""What a bench calls a failure."""

import pytest

from bench.report import Figure, Section, broken


@pytest.mark.parametrize(
    ("figure", "told"),
    [
        (Figure("writes", 3, "", 0, is_firm=True), ["idle: writes: 3, not <= 0"]),
        (Figure("writes", 0, "", 0, is_firm=True), []),
        (Figure("ready", 9, "", at_least=10, is_firm=True), ["idle: ready: 9, not >= 10"]),
        (Figure("seconds", 90, "s", 60), []),
        (Figure("memory", 90, "MB", is_firm=True), []),
    ],
)
def test_only_what_no_machine_is_too_slow_for_is_broken(figure: Figure, told: list[str]) -> None:
    assert broken([Section("idle", [figure])]) == told
