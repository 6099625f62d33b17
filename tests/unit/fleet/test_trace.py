"""A recorded trace, and the pods that it becomes."""

import math
from dataclasses import replace
from typing import Any

import pytest

from hami_mock.fleet.trace import Names, Wanted, last_end, pods, read
from tests.unit.builders import problems_of

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)
WANTED = Wanted("trace", "hami-scheduler", Names("n/gpu", "n/mem", "n/core"), time_factor=10)


def made(*rows: str) -> list[tuple[float, dict[str, Any]]]:
    return [*pods(read([HEADER, *(f"{row}\n" for row in rows)], "t.csv"), WANTED)]


def test_pods_come_in_their_order_and_run_as_long_as_they_did() -> None:
    (first, one), (second, two) = made(
        "Late_Pod,6000,12288,1,470,A10|T4,LS,Running,500,1100,600",
        "early,0,0,2,1000,,BE,Running,400,,",
    )
    assert (first, second) == (0.0, 10.0)
    assert one["metadata"]["name"] == "early-0"
    assert two["metadata"]["name"] == "late-pod-1"
    # From when it was scheduled to its end: 500 s, ten times as fast.
    assert two["metadata"]["annotations"] == {"hami-mock.io/duration": "50s"}
    assert one["metadata"]["annotations"] == {}
    assert two["spec"]["schedulerName"] == "hami-scheduler"


def test_a_part_of_a_card_is_percent_of_it_and_a_whole_one_says_nothing_of_that() -> None:
    limits = [
        pod["spec"]["containers"][0]["resources"]["limits"]
        for _, pod in made(
            "a,6000,12288,1,475,,,,1,,",
            "b,500,0,2,1000,,,,2,,",
            "c,100,5,0,0,,,,3,,",
            "d,0,0,1,0,,,,4,,",
            "e,0,0,2,500,,,,5,,",
        )
    ]
    assert limits == [
        {"cpu": "6000m", "memory": "12288Mi", "n/gpu": "1", "n/mem": "48", "n/core": "48"},
        {"cpu": "500m", "n/gpu": "2"},
        {"cpu": "100m", "memory": "5Mi"},
        {"n/gpu": "1"},
        {"n/gpu": "2", "n/mem": "50", "n/core": "50"},
    ]


def test_models_are_asked_for_by_the_annotation_of_the_cards_vendor() -> None:
    row = f"{HEADER}", "a,1,1,1,500,V100M16|T4,,,1,,\n", "b,1,1,0,0,T4,,,2,,\n"
    own = replace(WANTED, names=Names())
    one, none = (pod["metadata"]["annotations"] for _, pod in pods(read(row, "t.csv"), own))
    assert one == {"nvidia.com/use-gputype": "Tesla V100-SXM2-16GB,Tesla T4"}
    assert none == {}
    ((_, unknown), _) = pods(read(row, "t.csv"), WANTED)
    assert unknown["metadata"]["annotations"] == {}


def test_without_a_column_of_times_all_pods_come_at_once() -> None:
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "a,1,1,0,0\n", "b,1,1,0,0\n"
    assert [(each.begins, each.seconds) for each in read(text, "t.csv")] == [(0.0, None)] * 2


def test_the_end_of_a_trace() -> None:
    rows = [HEADER, "a,1,1,0,0,,,,100,160,110\n", "b,1,1,0,0,,,,120,150,\n"]
    assert last_end(read(rows, "t")) == 50.0
    assert last_end(read([*rows, "c,1,1,0,0,,,,1,,\n"], "t")) == math.inf


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            ["name,cpu_milli\n"],
            "t.csv: line 1: there is no column memory_mib and no column num_gpu",
        ),
        (
            [HEADER, "a,1,1,x,0,,,,1,,\n"],
            "t.csv: line 2: num_gpu: 'x' is not allowed: it must be a number from 0 to 128",
        ),
        (
            [HEADER, "a,1,1,1,0,,,,,,\n"],
            "t.csv: line 2: creation_time: '' is not allowed: it must be a time",
        ),
    ],
)
def test_what_is_wrong_with_a_trace(rows: list[str], words: str) -> None:
    (problem,) = problems_of(lambda: read(rows, "t.csv"))
    assert problem.startswith(words)
