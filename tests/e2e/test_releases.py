"""Which releases of Kubernetes the suite is for."""

from __future__ import annotations

import pytest

from .harness import DEFAULT, PINNED, HarnessError, KubernetesVersion, dra_gates, parse_versions
from .harness.feature_gates import gate_flags
from .mock import ROOT

OLDEST, BETWEEN, NEWEST = PINNED


@pytest.mark.parametrize(
    ("asked", "releases"),
    [
        ([], [DEFAULT]),
        (["all"], [OLDEST, BETWEEN, NEWEST]),
        (["oldest", "newest"], [OLDEST, NEWEST]),
        (["between"], [BETWEEN]),
        (["newest", f"1.{NEWEST.minor}"], [NEWEST]),
        (["v1.30.2", "oldest"], [KubernetesVersion(30, 2), OLDEST]),
    ],
)
def test_releases_are_asked_for_by_number_or_word(
    asked: list[str], releases: list[KubernetesVersion]
) -> None:
    assert list(parse_versions(asked)) == releases


@pytest.mark.parametrize("asked", ["1.2", "latest", "2.0", ""])
def test_what_is_no_release_is_an_error_that_names_those_there_are(asked: str) -> None:
    with pytest.raises(HarnessError, match=f"1.{NEWEST.minor}"):
        parse_versions([asked])


def test_the_three_are_minors_in_a_row_and_written_down() -> None:
    assert [pin.minor for pin in PINNED] == list(range(OLDEST.minor, OLDEST.minor + 3))
    told = (ROOT / "Makefile").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    assert f"1.{OLDEST.minor} and 1.{NEWEST.minor}, side by side" in told
    assert f"1.{OLDEST.minor}, 1.{BETWEEN.minor} and 1.{NEWEST.minor}" in told


def test_a_gate_is_set_only_where_it_is_off_by_default() -> None:
    assert "--feature-gates=DRAConsumableCapacity=true," in gate_flags(dra_gates(OLDEST))[0]
    assert gate_flags(dra_gates(BETWEEN)) == gate_flags(dra_gates(NEWEST)) == []
