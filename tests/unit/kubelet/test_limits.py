import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kubelet.limits import (
    LARGEST_POD,
    Version,
    fits,
    parse_version,
    restart_seconds,
    too_many,
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.36", (1, 36)),
        ("v1.36.4", (1, 36)),
        ("v1.35.8+k3s1", (1, 35)),
        ("v1.37.0-rc.1", (1, 37)),
        ("v1.9", (1, 9)),
        ("2.0", (2, 0)),
    ],
)
def test_versions_are_read(text: str, version: Version) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["", "1", "v", "banana", "v1.", "one.two", " 1.36", "-1.36"])
def test_what_is_no_version_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version of Kubernetes") as caught:
        parse_version(text)
    assert repr(text) in str(caught.value)


def test_versions_compare_as_numbers() -> None:
    assert parse_version("1.9") < parse_version("1.35") < parse_version("1.100")


@pytest.mark.parametrize(
    ("size", "is_fine"), [(0, True), (4_187_840, True), (4_194_304, True), (4_194_305, False)]
)
def test_a_list_fits_up_to_4_mib(size: int, is_fine: bool) -> None:
    assert fits(size) is is_fine


@pytest.mark.parametrize("version", [(1, 36), (1, 37), None])
@pytest.mark.parametrize(("units", "seconds"), [(8192, 9), (16384, 22)])
def test_a_restart_is_not_promised_to_be_shorter_than_it_was(
    units: int, seconds: float, version: Version | None
) -> None:
    assert restart_seconds([units], version) > seconds - 0.5


@given(st.lists(st.integers(1, 20_000), min_size=2, max_size=8))
def test_from_1_37_on_other_resources_units_are_not_looked_at(counts: list[int]) -> None:
    alone = [restart_seconds([count], (1, 37)) for count in counts]
    nothing = restart_seconds([], (1, 37))
    together = restart_seconds(counts, (1, 37)) - nothing
    assert together == pytest.approx(sum(alone) - len(alone) * nothing)
    assert together < restart_seconds(counts, (1, 36)) - nothing
    assert restart_seconds(counts, None) == restart_seconds(counts, (1, 36))


def test_the_largest_pod_lies_between_the_one_that_ran_and_the_one_that_did_not() -> None:
    assert 66_000 <= LARGEST_POD < 81_920


@given(units=st.integers(0, 10**7), version=st.sampled_from([(1, 31), (1, 35)]))
def test_before_1_36_no_number_of_units_is_too_many(units: int, version: Version) -> None:
    assert not too_many([units], version)


@pytest.mark.parametrize("version", [(1, 36), (1, 37), (1, 40), (2, 0), None])
@pytest.mark.parametrize(("units", "is_too_many"), [(660, False), (65536, True), (262_144, True)])
def test_from_1_36_on_many_units_are_dear(
    units: int, is_too_many: bool, version: Version | None
) -> None:
    assert too_many([units], version) is is_too_many


@pytest.mark.parametrize(("version", "is_too_many"), [((1, 36), True), ((1, 37), False)])
def test_what_1_36_does_not_bear_1_37_may(version: Version, is_too_many: bool) -> None:
    assert too_many([4096, 4096], version) is is_too_many


@given(st.integers(0, 20_000), st.sampled_from([(1, 36), (1, 37)]))
def test_dear_is_what_keeps_a_restarted_kubelet_away_for_more_than_10_s(
    units: int, version: Version
) -> None:
    assert too_many([units], version) == (restart_seconds([units], version) > 10)


@given(st.integers(0, 300_000), st.integers(0, 300_000), st.sampled_from([(1, 36), (1, 37), None]))
def test_fewer_units_are_never_dearer(one: int, other: int, version: Version | None) -> None:
    fewer, more = sorted((one, other))
    assert too_many([fewer], version) <= too_many([more], version)
    assert restart_seconds([fewer], version) <= restart_seconds([more], version)
