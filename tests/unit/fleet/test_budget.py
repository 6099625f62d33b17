"""How many writes the API server gets."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from hami_mock.errors import Busy
from hami_mock.fleet.budget import Budget


class Clock:
    """A clock that goes on when somebody sleeps, or when an answer takes its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("hami_mock.fleet.budget.anyio.sleep", self.sleep)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def answering(self, seconds: float) -> Callable[[], Awaitable[str]]:
        async def call() -> str:
            self.now += seconds
            return "done"

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def write(budget: Budget, call: Callable[[], Awaitable[str]], times: int = 1) -> None:
    for _ in range(times):
        assert await budget.write(call) == "done"


def test_no_more_is_written_than_the_rate(clock: Clock) -> None:
    budget = Budget(10, clock)
    anyio.run(write, budget, clock.answering(0), 110)
    # A second's worth fits in at once, the rest comes at its pace.
    assert clock.now == pytest.approx(100 + 9.9)
    assert budget.written == 110


def test_without_a_rate_there_is_no_limit(clock: Clock) -> None:
    anyio.run(write, Budget(0, clock), clock.answering(0), 1000)
    assert clock.now == 100


def test_what_was_not_used_is_not_kept_for_longer_than_a_second(clock: Clock) -> None:
    budget = Budget(10, clock)
    anyio.run(write, budget, clock.answering(0))
    clock.now += 3600
    before = clock.now
    anyio.run(write, budget, clock.answering(0), 30)
    assert clock.now == pytest.approx(before + 1.9)


def refusing(seconds: float) -> Callable[[], Awaitable[str]]:
    async def call() -> str:
        error = Busy("too much")
        error.retry_after = seconds
        raise error

    return call


async def refused(budget: Budget, seconds: float, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(Busy):
            await budget.write(refusing(seconds))


def test_a_refusal_halves_the_rate_and_is_waited_for(clock: Clock) -> None:
    budget = Budget(100, clock)
    anyio.run(refused, budget, 5)
    assert budget.allowed == 50
    anyio.run(write, budget, clock.answering(0))
    assert clock.now >= 105


def test_many_refusals_of_one_moment_count_once(clock: Clock) -> None:
    budget = Budget(100, clock)
    anyio.run(refused, budget, 0, 9)
    assert budget.allowed == 50
    assert budget.refused == 1


def test_slow_answers_lower_the_rate_and_good_ones_bring_it_back(clock: Clock) -> None:
    budget = Budget(100, clock)
    anyio.run(write, budget, clock.answering(3))
    assert budget.allowed == 80
    anyio.run(write, budget, clock.answering(0), 10)
    assert 80 < budget.allowed < 100
    anyio.run(write, budget, clock.answering(0), 200)
    assert budget.allowed == 100


def test_it_knows_what_was_written_of_late(clock: Clock) -> None:
    budget = Budget(0, clock)
    anyio.run(write, budget, clock.answering(0), 40)
    clock.now += 1
    anyio.run(write, budget, clock.answering(0), 10)
    assert budget.per_second == 5
    assert budget.peak == 40
    clock.now += 60
    assert budget.per_second == 0
