from hypothesis import given
from hypothesis import strategies as st

from hami_mock.node.load_sharing import shared


def test_what_fits_is_given() -> None:
    assert shared([30, 70], 100) == [30, 70]
    assert shared([], 100) == []


def test_what_doesnt_fit_is_scaled_down_for_all() -> None:
    assert shared([100, 100], 100) == [50, 50]
    assert shared([90, 60], 100) == [60, 40]
    assert sum(shared([100] * 3, 100)) == 100
    assert shared([80] * 100, 100) == [1] * 100


@given(st.lists(st.floats(0, 1e6), max_size=100), st.integers(0, 200_000))
def test_sums_agree_and_nobody_gets_more_than_he_wants(wanted: list[float], most: int) -> None:
    given_ = shared(wanted, most)
    assert sum(given_) == min(most, round(sum(wanted)))
    factor = min(1.0, most / sum(wanted)) if sum(wanted) else 1.0
    for got, want in zip(given_, wanted, strict=True):
        assert 0 <= got < want + 1
        assert abs(got - want * factor) <= 1.001
