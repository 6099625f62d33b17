import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.node.load_reader import read
from hami_mock.node.load_shapes import KINDS, Moment, Shape, key_of

KEY = key_of(0, "default", "train-0", "main")
HOUR = 3600.0
SCHEDULE = "[{time: 1h, utilization: 80}, {time: 30m, utilization: 0}]"
TEXTS = [
    "80",
    "20-60",
    "idle",
    "sine:20-80:10m",
    SCHEDULE,
    *(kind.example for kind in KINDS.values() if kind.example),
]


def at(text: str, elapsed: float, time: float | None = None, key: int = KEY) -> float:
    return read(text, "x").value(Moment(elapsed, elapsed if time is None else time, key))


def shape(text: object) -> Shape:
    return read(text, "x")


def test_a_number_is_that_number() -> None:
    assert {at("80", seconds) for seconds in range(0, 100_000, 77)} == {80}
    assert at("12.5 %", 0) == 12.5


def test_a_range_is_drawn_from_every_ten_seconds() -> None:
    values = [at("20-60", seconds) for seconds in range(10_000)]
    assert len(set(values)) == 1000
    assert min(values) >= 20
    assert max(values) <= 60
    assert min(values) < 21
    assert max(values) > 59
    assert all(len(set(values[i : i + 10])) == 1 for i in range(0, 10_000, 10))


def test_a_ramp_rises_and_stays() -> None:
    assert [at("ramp:0-90:10m", s) for s in (0, 300, 600, 9999)] == [0, 45, 90, 90]


def test_a_sine_begins_low() -> None:
    assert [round(at("sine:20-80:10m", s)) for s in (0, 150, 300, 600)] == [20, 50, 80, 20]


def test_a_burst_is_a_part_of_its_period() -> None:
    values = [at("burst:5-95:5m:part=30s", s) for s in range(300)]
    assert values == [95] * 30 + [5] * 270


def test_training_stops_for_checkpoints() -> None:
    values = [at("training:95:30m:part=1m", s) for s in range(0, 3600, 60)]
    assert [i for i, value in enumerate(values) if value == 0] == [29, 59]
    assert set(values) == {0, 95}


def test_inference_follows_the_time_of_day_not_the_start_of_the_pod() -> None:
    night, noon = (at("inference:10-80", 5, time=hour * HOUR) for hour in (3, 15))
    assert 10 <= night < 21
    assert 69 < noon <= 80
    assert at("inference:10-80", 99_999, time=15 * HOUR) == noon


def test_a_schedule_comes_again_unless_it_is_told_not_to() -> None:
    assert [at(SCHEDULE, s * HOUR) for s in (0, 0.99, 1.2, 1.5, 2.6)] == [80, 80, 0, 80, 0]
    twice = f"{{schedule: {SCHEDULE}, repeat: 2}}"
    assert [at(twice, s * HOUR) for s in (1.5, 2.9, 3)] == [80, 0, 0]
    once = f"{{schedule: {SCHEDULE}, repeat: false}}"
    assert [at(once, s * HOUR) for s in (0.5, 1.6, 300)] == [80, 0, 0]


@pytest.mark.parametrize("text", TEXTS)
@given(st.floats(0, 1e9), st.floats(0, 4e9), st.integers(0, 2**64 - 1))
def test_a_value_is_within_bounds_and_the_same_again(
    text: str, elapsed: float, time: float, key: int
) -> None:
    moment = Moment(elapsed, time, key)
    one, other = shape(text), shape(text)
    assert one == other
    assert one.value(moment) == other.value(moment)
    assert 0 <= one.value(moment) <= 100
    assert 0 <= one.memory_part(moment) <= 100


def test_the_seed_and_the_container_decide() -> None:
    keys = [key_of(seed, "default", pod, "main") for seed in (0, 1) for pod in ("a", "b")]
    assert len({at("0-100", 5, key=key) for key in keys}) == 4
    # Names can't be shifted into each other.
    assert key_of(1, "ab", "c") != key_of(1, "a", "bc")


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("80", 50),
        ("80:memory=70", 70),
        ("idle", 0),
        ("idle:memory=30", 30),
        ("training", 85),
        ("inference", 75),
        ("{shape: sine, memory: 20}", 20),
    ],
)
def test_memory_is_a_part_of_the_limit(text: str, memory: float) -> None:
    assert shape(text).memory_part(Moment(0, 0, KEY)) == memory


def test_what_yaml_has_read_already() -> None:
    assert shape(80).busy == (80, 80)
    assert shape([{"time": 60, "utilization": "5-9"}]).schedule[0].busy == (5, 9)
    assert shape({"shape": "sine", "utilization": "5-9", "period": "1m"}).period == 60


def test_one_level_of_a_shape_that_moves_is_its_highest() -> None:
    assert shape("sine:50").busy == (20, 50)
    assert shape("sine:10").busy == (10, 10)
    assert shape("ramp:80").busy == (0, 80)
