from collections.abc import Awaitable, Callable
from random import Random

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kit.concurrency import Backoff, first_of


def undiluted(first: float, longest: float, count: int) -> list[float]:
    return [min(first * 2**number, longest) for number in range(count)]


@given(seed=st.integers(), count=st.integers(1, 20))
def test_delays_double_up_to_the_longest_each_shortened_by_at_most_half(
    seed: int, count: int
) -> None:
    backoff = Backoff(first=0.1, longest=30.0, random=Random(seed))
    for full in undiluted(0.1, 30.0, count):
        assert full / 2 <= backoff.next() <= full


def test_delays_are_spread_so_that_a_cluster_does_not_knock_at_once() -> None:
    delays = {Backoff(random=Random(seed)).next() for seed in range(20)}
    assert len(delays) == 20
    assert max(delays) - min(delays) > 0.02


def test_the_longest_delay_stays() -> None:
    backoff = Backoff(first=1, longest=4, random=Random(1))
    delays = [backoff.next() for _ in range(50)]
    assert max(delays) <= 4
    assert min(delays[2:]) >= 2


def test_reset_begins_with_the_first_delay_again() -> None:
    backoff = Backoff(first=1, longest=100, random=Random(1))
    for _ in range(6):
        backoff.next()
    backoff.reset()
    assert 0.5 <= backoff.next() <= 1
    assert 1 <= backoff.next() <= 2


def test_a_first_delay_beyond_the_longest_is_cut() -> None:
    assert Backoff(first=10, longest=1, random=Random(1)).next() <= 1


@pytest.mark.parametrize("ready", [0, 1, 2])
def test_first_of_returns_with_the_first_and_cancels_the_others(ready: int) -> None:
    async def scenario() -> list[int]:
        events = [anyio.Event() for _ in range(3)]
        cancelled: list[int] = []

        def waiting(number: int) -> Callable[[], Awaitable[None]]:
            async def wait() -> None:
                try:
                    await events[number].wait()
                except BaseException:
                    cancelled.append(number)
                    raise

            return wait

        events[ready].set()
        with anyio.fail_after(10):
            await first_of(*(waiting(number) for number in range(3)))
        return cancelled

    assert set(anyio.run(scenario)) == {0, 1, 2} - {ready}


def test_first_of_leaves_when_an_event_comes_later() -> None:
    async def scenario() -> bool:
        event = anyio.Event()
        async with anyio.create_task_group() as tasks:
            with anyio.fail_after(10):
                tasks.start_soon(set_, event)
                await first_of(anyio.sleep_forever, event.wait)
        return event.is_set()

    async def set_(event: anyio.Event) -> None:
        event.set()

    assert anyio.run(scenario)


def test_first_of_raises_what_one_of_them_raises() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    async def scenario() -> None:
        await first_of(anyio.sleep_forever, fail)

    with pytest.raises(ExceptionGroup) as caught:
        anyio.run(scenario)
    assert caught.group_contains(ZeroDivisionError)
