import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.errors import UsageError
from hami_mock.node import load_trace
from hami_mock.node.load_trace import Sample, Trace, merged, parse
from tests.unit.builders import problems_of

ME = ("default", "train-0", "main")
OURS = "time,utilization,memory\n0,10,50\n1m,NA,60\n2m,90,\n"
ALIBABA = (
    "value,timestamp_anon,container_ip\n"
    "55.5,100,10.0.0.1\n60,160,10.0.0.1\n,170,10.0.0.2\n7,100,10.0.0.2\n"
)
ALIBABA_MEMORY = "timestamp_anon,value,container_ip\n100,2147483648,10.0.0.1\n160,0,10.0.0.1\n"
PHILLY = (
    "time,machineId,gpu0_util,gpu1_util,\n"
    "2017-10-03 00:00:00 PDT,m1,NA,5.0,\n"
    "2017-10-03 00:01:00 PDT,m1,99.5,NA,\n"
)


def trace(text: str) -> Trace:
    return parse(text.splitlines(), "--load-trace f.csv")


def samples(of: Trace, key: int, *elapsed: float) -> list[Sample]:
    series = of.find(ME, key)
    assert series is not None
    return [of.at(series, seconds) for seconds in elapsed]


def test_ours() -> None:
    found = trace(OURS)
    assert samples(found, 0, 0, 59, 60, 125) == [
        Sample(10, 50), Sample(10, 50), Sample(10, 60), Sample(90, 60),
    ]  # fmt: skip


def test_a_trace_begins_anew() -> None:
    found = trace("time,utilization\n100,10\n110,20\n")
    assert [s.busy for s in samples(found, 0, 0, 10, 19, 20, 30)] == [10, 20, 20, 10, 20]
    assert [s.busy for s in samples(trace("time,utilization\n5,7\n"), 0, 0, 1e6)] == [7, 7]


def test_a_series_may_be_for_a_pod_or_a_container() -> None:
    text = "time,utilization,name\n0,10,default/train-0\n0,20,default/b/side\n0,5,x/y\n"
    found = trace(text)
    assert samples(found, 7, 0)[0].busy == 10
    series = found.find(("default", "b", "side"), 7)
    assert series is not None
    assert found.at(series, 0).busy == 20
    assert found.find(("default", "b", "main"), 7) is None


def test_alibaba() -> None:
    found = trace(ALIBABA)
    assert [s.busy for s in samples(found, 0, 0, 60)] == [55.5, 60]
    assert [s.busy for s in samples(found, 1, 0, 60)] == [7, 7]


def test_alibabas_memory_is_known_by_its_size_and_joined() -> None:
    memory = trace(ALIBABA_MEMORY)
    assert samples(memory, 0, 0, 60) == [Sample(memory=2048), Sample(memory=2048)]
    both = merged([trace(ALIBABA), memory])
    assert samples(both, 0, 0, 60) == [Sample(55.5, None, 2048), Sample(60, None, 2048)]
    assert samples(merged([memory, trace(ALIBABA)]), 0, 0) == [Sample(55.5, None, 2048)]


def test_philly() -> None:
    found = trace(PHILLY)
    assert [*found.series] == ["m1/gpu1_util", "m1/gpu0_util"]
    assert samples(found, 0, 0, 60)[0].busy == 5
    assert samples(found, 1, 0)[0].busy == 99.5
    assert found.length == 60


def test_rows_in_any_order() -> None:
    found = trace("time,utilization\n10,2\n0,1\n20,3\n")
    assert [s.busy for s in samples(found, 0, 0, 10, 20)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: the header '' isn't known: it must be time,utilization[,memory][,name]; "),
        ("a,b\n1,2", "line 1: the header 'a,b' isn't known"),
        ("time,utilization\n", "--load-trace f.csv: it has no values"),
        ("time,utilization\n0,NA\n", "--load-trace f.csv: it has no values"),
        ("time,utilization\nx,1", "line 2: 'x' is not a time: write seconds, 1h30m or"),
        ("time,utilization\n1,50\n2,-1", "line 3: '-1' is out of range"),
        ("time,utilization\n1,inf", "line 2: 'inf' is out of range"),
        ("time,utilization\n1,many", "line 2: 'many' is not a number"),
        ("time,utilization" + ",x" * 200, "line 1: more than 200 columns"),
        (f"time,utilization\n1,{'9' * 200_000}", "line 2: field larger than field limit"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, problem: str) -> None:
    (line,) = problems_of(lambda: trace(text))
    assert line.startswith("--load-trace f.csv")
    assert problem in line
    assert len(line) < 1000


def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_trace, "MOST_SAMPLES", 10)
    rows = "\n".join(f"{second},1" for second in range(12))
    (line,) = problems_of(lambda: trace(f"time,utilization\n{rows}"))
    assert "line 12: there are more than 10 values" in line


cells = st.sampled_from(
    ["time", "utilization", "memory", "name", "value", "timestamp_anon", "container_ip",
     "machineId", "gpu0_util", "NA", "1", "99.5", "1m", "2017-10-03 00:00:00 PDT", "-", "1e308",
     "nan", '"', "\0", "\ud800", "9" * 400]
)  # fmt: skip


@given(st.lists(st.lists(st.one_of(cells, st.text(max_size=10)), max_size=6), max_size=6))
def test_any_file_is_a_trace_or_refused(rows: list[list[str]]) -> None:
    lines = [",".join(row) for row in rows]
    try:
        found = parse(lines, "x")
    except UsageError:
        return
    if series := found.find(ME, 3):
        found.at(series, 12345.6)
