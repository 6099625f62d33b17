"""Cards over any sequence of work, faults and steps: sums, bounds, integrals, inertia."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import DEGRADED, UNHEALTHY
from hami_mock.node.physics import (
    Condition,
    Inner,
    Trouble,
    Work,
    capacity,
    errors_of,
    reading,
    step,
    trouble_of,
)
from hami_mock.node.readings import Reading, Throttle
from hami_mock.vendors import catalog
from hami_mock.vendors.physics import Traits, traits

MODELS = [(maker, model) for maker, models in catalog.models().items() for model in models.values()]
works = st.builds(
    Work,
    busy=st.floats(0, 100),
    memory=st.integers(0, 400_000),
    contexts=st.integers(0, 100),
    linked=st.floats(0, 100),
)
troubles = st.builds(Trouble, st.booleans(), st.booleans(), st.booleans(), st.booleans())
steps = st.lists(st.tuples(works, troubles, st.floats(0, 600)), min_size=1, max_size=20)


def traits_of(name: str) -> Traits:
    return next(traits(maker, model) for maker, model in MODELS if model.name == name)


H100 = traits_of("H100-SXM5-80GB")
TOTAL = 81559
WELL = Trouble()


def shown(work: Work, seconds: float = 0.0, trouble: Trouble = WELL, of: Traits = H100) -> Reading:
    """What a card shows after it has done the same for a while, in steps of a second."""
    inner = Inner()
    for _ in range(round(seconds)):
        inner = step(of, inner, work, trouble, 1.0)
    return reading(of, TOTAL, inner, work, Condition(trouble))


@given(st.sampled_from(MODELS), steps)
@settings(max_examples=300, deadline=None)
def test_any_card_over_any_work(of: tuple[str, catalog.Model], sequence: list[tuple]) -> None:  # type: ignore[type-arg]
    nature, total = traits(*of), of[1].memory
    inner, before, integral = Inner(), None, 0.0
    for work, trouble, seconds in sequence:
        was = reading(nature, total, inner, work, Condition(trouble))
        inner = step(nature, inner, work, trouble, seconds)
        integral += was.power * seconds
        now = reading(nature, total, inner, work, Condition(trouble))
        assert now.memory_used + now.memory_reserved + now.memory_free == total
        assert min(now.memory_used, now.memory_reserved, now.memory_free) >= 0
        assert nature.idle <= now.power <= nature.power_limit
        assert 0 <= max(now.busy / 100, now.tensor, now.dram) <= 1
        assert nature.warm - 1e-6 <= now.temperature <= nature.slowdown + 8
        assert nature.idle_clock * 0.5 <= now.sm_clock <= max(nature.clock, nature.idle_clock)
        assert now.energy == pytest.approx(integral * 1000, abs=1.001)
        for counter in ("energy", "nvlink_bytes", "ecc_errors"):
            assert before is None or getattr(now, counter) >= getattr(before, counter)
        before = now


@given(works, works, troubles)
@settings(deadline=None)
def test_temperature_never_jumps(first: Work, second: Work, trouble: Trouble) -> None:
    """Within a tenth of a second, however work changes, it moves by a little."""
    inner = Inner()
    for _ in range(100):
        inner = step(H100, inner, first, Trouble(), 1.0)
    before = reading(H100, TOTAL, inner, first, Condition())
    after = step(H100, inner, second, trouble, 0.1)
    now = reading(H100, TOTAL, after, second, Condition(trouble))
    assert abs(now.temperature - before.temperature) < 1.0


@given(works, troubles, st.floats(1, 300), st.integers(2, 50))
@settings(deadline=None)
def test_many_small_steps_are_as_one_large_one(
    work: Work, trouble: Trouble, seconds: float, parts: int
) -> None:
    # As hot as it gets with this work: no throttle begins in between.
    calm = trouble._replace(thermal=False)
    large = step(H100, Inner(), work, calm, seconds)
    small = Inner()
    for _ in range(parts):
        small = step(H100, small, work, calm, seconds / parts)
    assert small[:-1] == pytest.approx(large[:-1], rel=1e-6, abs=1e-6)
    assert small.held == pytest.approx(large.held, rel=1e-6, abs=1e-6)


def test_power_has_three_levels() -> None:
    assert shown(Work()).power == 70
    assert shown(Work(contexts=1, memory=1000)).power == 70 + 44
    assert shown(Work(contexts=5, memory=50_000)).power == 70 + 44
    assert shown(Work(50, 1000, 1)).power == pytest.approx(114 + 0.5 * (700 - 114))
    assert shown(Work(100, 1000, 1)).power == 700


def test_the_figures_of_an_h100() -> None:
    idle, busy = shown(Work(), 300), shown(Work(88, 40_000, 1), 300)
    assert (idle.temperature, idle.sm_clock, idle.memory_clock) == (41, 345, 2619)
    assert busy.temperature == pytest.approx(59, abs=1.5)
    assert (busy.sm_clock, busy.memory_clock, busy.memory_reserved) == (1980, 2619, 479)
    assert 7 <= busy.memory_busy <= 11


def test_heat_comes_with_a_fast_and_a_slow_delay() -> None:
    work = Work(88, 1000, 1)
    begin, soon, later, end = (shown(work, s).temperature for s in (0, 3, 45, 600))
    assert begin < soon < later < end
    assert 0.3 < (soon - begin) / (end - begin) < 0.45
    assert 0.7 < (later - begin) / (end - begin) < 0.85


def test_at_the_power_limit_the_clock_drops() -> None:
    below, at = shown(Work(90, 1000, 1)), shown(Work(100, 1000, 1))
    assert Throttle.POWER_CAP not in below.throttles
    assert at.throttles == {Throttle.POWER_CAP}
    assert at.sm_clock < below.sm_clock == 1980


def test_an_idle_card_says_why_it_is_slow() -> None:
    assert shown(Work()).throttles == {Throttle.IDLE}
    assert shown(Work(contexts=1)).throttles == set()


def test_a_card_that_overheats_is_slowed_down_and_cools_again() -> None:
    work = Work(80, 1000, 1)
    trouble = trouble_of([Fault(DEGRADED, frozenset("x"), "thermal")])
    assert shown(work, 5, trouble).throttles == set()
    hot = shown(work, 120, trouble)
    assert hot.throttles == {Throttle.HARDWARE_THERMAL}
    assert hot.temperature >= H100.slowdown
    assert hot.sm_clock == 990
    assert hot.power < shown(work, 120).power
    inner = Inner()
    for seconds in range(600):
        inner = step(H100, inner, work, trouble if seconds < 120 else Trouble(), 1.0)
    assert reading(H100, TOTAL, inner, work, Condition()).throttles == set()


def test_other_degradations() -> None:
    slowed = trouble_of([Fault(DEGRADED, frozenset("x"), "power brake")])
    assert shown(Work(80, 1, 1), 1, slowed).throttles == {Throttle.HARDWARE}
    ecc = trouble_of([Fault(DEGRADED, frozenset("x"), "ECC")])
    assert shown(Work(), 90, ecc).ecc_errors == 3
    assert trouble_of([Fault(DEGRADED, frozenset("x"), "dust")]) == Trouble()


def test_nothing_runs_on_a_card_that_fell_off_the_bus() -> None:
    gone = trouble_of([Fault(UNHEALTHY, frozenset("x"), "Xid 79 (GPU has fallen off the bus)")])
    assert gone.stopped
    assert shown(Work(80, 1, 1, 80), 10, gone).busy == 0
    assert shown(Work(80, 1, 1, 80), 10, gone).nvlink_bytes == 0
    assert shown(Work(80, 1, 1, 80), 10, gone).nvlink_speed == 0
    assert not trouble_of([Fault(UNHEALTHY, frozenset("x"), "Xid 48 (…)")]).stopped


@pytest.mark.parametrize(
    ("xids", "ecc", "corrected", "uncorrected", "failed"),
    [
        ({}, 0, 0, 0, False),
        ({13: 9}, 0, 0, 0, False),
        ({48: 2}, 2, 0, 2, False),
        ({48: 1, 63: 1}, 1, 0, 1, False),
        ({94: 1, 95: 1, 63: 3}, 2, 0, 3, False),
        ({92: 4}, 0, 4, 0, False),
        ({64: 1}, 0, 0, 0, True),
        ({140: 1}, 1, 0, 0, False),
    ],
)
def test_what_xids_say_of_the_memory(
    xids: dict[int, int], ecc: int, corrected: int, uncorrected: int, failed: bool
) -> None:
    errors = errors_of(xids, 7)
    assert errors == (ecc, corrected, uncorrected, failed, 7)

    def lost_by(model: str) -> tuple[object, ...]:
        found = reading(traits_of(model), TOTAL, Inner(), Work(), Condition(errors=errors))
        assert (found.ecc_errors, found.corrected_errors, found.last_xid) == (ecc, corrected, 7)
        rows = found.remapped_correctable, found.remapped_uncorrectable, found.remap_failed
        return *rows, found.retired_correctable, found.retired_uncorrectable

    # A card loses rows of its memory, or pages, or says nothing of either.
    assert lost_by("H100-SXM5-80GB") == (corrected, uncorrected, failed, None, None)
    assert lost_by("V100-SXM2-32GB") == (None, None, None, corrected, uncorrected)
    assert lost_by("RTX-4090") == (None,) * 5


def test_time_that_clocks_were_low_counts_by_what_kept_them_so() -> None:
    brake = trouble_of([Fault(DEGRADED, frozenset("x"), "power brake")])
    inner = Inner()
    for work, trouble, seconds in (
        (Work(), WELL, 5.0),
        (Work(100, 1, 1), WELL, 3.0),
        (Work(50, 1, 1), WELL, 20.0),
        (Work(50, 1, 1), brake, 7.0),
        (Work(), brake, 2.0),
        (Work(100, 1, 1), WELL, 4.0),
    ):
        inner = step(H100, inner, work, trouble, seconds)
    assert reading(H100, TOTAL, inner, Work(), Condition()).held == {
        frozenset({Throttle.IDLE}): 5.0,
        frozenset({Throttle.POWER_CAP}): 7.0,
        frozenset({Throttle.HARDWARE}): 7.0,
        frozenset({Throttle.HARDWARE, Throttle.IDLE}): 2.0,
    }


def test_links_are_used_by_work_on_several_cards_only() -> None:
    assert shown(Work(100, 1, 1), 10).nvlink_bytes == 0
    assert shown(Work(100, 1, 1, 100), 10).nvlink_bytes == pytest.approx(10 * 0.2 * 900e9)
    assert shown(Work(100, 1, 1, 100), 10, of=traits_of("L4")).nvlink_bytes == 0
    assert shown(Work(100, 1, 1, 50), 10).nvlink_speed == pytest.approx(0.1 * 900e9)
    assert shown(Work(100, 1, 1), 10).nvlink_speed == 0


def test_rates_of_pcie_are_within_what_it_can_do() -> None:
    busy = shown(Work(100, 1, 1))
    assert 0 < busy.pcie_sent < busy.pcie_received < 63e9
    assert shown(Work(contexts=1)).pcie_received == 0


@pytest.mark.parametrize(("maker", "model"), MODELS, ids=lambda each: getattr(each, "name", each))
def test_every_model_has_sensible_numbers(maker: str, model: catalog.Model) -> None:
    found = traits(maker, model)
    assert 0 < found.idle < found.idle + found.context < found.power_limit
    assert 0 < found.idle_clock <= found.clock < 3000
    assert 0 < found.idle_memory_clock <= found.memory_clock
    assert 0 <= found.reserved < model.memory / 4
    hottest = found.warm + found.heat * (found.power_limit - found.idle)
    assert hottest < found.slowdown - 4, "a card at its limit needn't be throttled for heat"
    assert math.isclose(capacity(found, model.memory) + found.reserved, model.memory)


def test_a_model_that_nobody_knows() -> None:
    unknown = catalog.Model("X", "X", 100, 0, "", 0)
    found = traits("nvidia", unknown)
    assert found.power_limit == 250
    small = reading(found, 100, Inner(), Work(memory=500, contexts=1), Condition())
    assert (small.memory_used, small.memory_reserved, small.memory_free) == (0, 100, 0)


def test_fans() -> None:
    desk = traits_of("RTX-4090")
    assert shown(Work()).fan is None
    assert shown(Work(), of=desk).fan == 30
    fan = shown(Work(100, 1, 1), 600, of=desk).fan
    assert fan is not None
    assert 30 < fan <= 100
