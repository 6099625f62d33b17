from hypothesis import given
from hypothesis import strategies as st

from hami_mock.node.sizing import Share, size
from hami_mock.vendors import Role
from tests.makers import NVIDIA
from tests.unit.builders import cards, offer_of


def share_of(amounts: list[int], factor: int | None = 1, pooled: bool = False) -> Share:
    offer = offer_of(NVIDIA, Role.MEMORY)
    of = cards(len(amounts))
    return Share("x.com/m", "--x", offer, NVIDIA, of, tuple(amounts), factor, pooled)


@given(st.lists(st.integers(0, 10**6), max_size=8), st.integers(1, 1000))
def test_a_pool_has_the_whole_and_each_card_almost_its_own(amounts: list[int], factor: int) -> None:
    found = share_of(amounts, pooled=True).counts(factor).values()
    assert sum(found) == sum(amounts) // factor
    assert all(
        0 <= count - amount // factor <= 1 for count, amount in zip(found, amounts, strict=True)
    )


@given(st.lists(st.integers(0, 10**6), max_size=8), st.integers(1, 1000))
def test_without_a_pool_each_card_has_its_own(amounts: list[int], factor: int) -> None:
    found = share_of(amounts).counts(factor).values()
    assert list(found) == [amount // factor for amount in amounts]


def test_a_card_without_a_device_is_refused_unless_it_is_one_of_a_pool() -> None:
    (), ((_, reason),) = size([share_of([5, 20], 10)], None)
    assert reason.startswith("card 0 (V100-SXM2-32GB) has less than one unit of 10 MiB")
    (resource,), () = size([share_of([5, 20], 10, pooled=True)], None)
    assert list(resource.devices.counts.values()) == [0, 2]
    (), ((_, reason),) = size([share_of([5, 4], 10, pooled=True)], None)
    assert reason == "all cards together have less than 10 MiB"


def test_two_of_a_name_are_one_too_many() -> None:
    (resource,), (left_out,) = size([share_of([5]), share_of([7])], None)
    assert resource.count == 5
    assert left_out == ("x.com/m", "--x and --x both use this name")
