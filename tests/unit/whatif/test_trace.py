"""openb's tables: pods in the order of their creation, and nodes as a fleet."""

from pathlib import Path

import pytest

from bench import whatif as bench
from hami_mock.errors import UsageError
from hami_mock.fleet.trace import MODELS, Wanted, pods, read
from hami_mock.kit.values import Fields
from hami_mock.whatif.cluster_model import cluster_of, load_fleet
from hami_mock.whatif.placer import place
from hami_mock.whatif.pod_reader import read_pod
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.trace import read_nodes, read_trace
from hami_mock.whatif.workload import read_one

_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)


def test_shares_and_whole_cards_are_read() -> None:
    text = _HEADER + (
        "late,6000,1024,1,455,V100M16|T4,LS,Running,30,100,40\n"
        "early,2000,512,8,1000,,LS,Running,10,,\n"
        "none,2000,512,0,0,,BE,Pending,20,50,\n"
    )
    early, none, late = read_one("openb.csv", text).arrivals
    assert (early.name, early.time, early.lasts) == ("early", 0.0, None)
    assert (none.time, none.lasts) == (10.0, 30.0)
    assert (late.time, late.lasts) == (20.0, 60.0)
    assert dict(late.kind.containers[0].asks) == {
        "cpu": 6000, "memory": 2**30,
        "nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 46, "nvidia.com/gpucores": 46,
    }  # fmt: skip
    assert late.kind.annotations == {"nvidia.com/use-gputype": "Tesla V100-SXM2-16GB,Tesla T4"}
    assert dict(early.kind.containers[0].asks) == {
        "cpu": 2000, "memory": 2**29, "nvidia.com/gpu": 8,
    }  # fmt: skip
    assert set(none.kind.containers[0].asks) == {"cpu", "memory"}


@pytest.mark.parametrize("share", ["1,0", "1,1000", "1,455", "2,500", "8,1000", "0,0"])
def test_what_is_placed_is_what_fleet_play_makes_of_a_row(share: str) -> None:
    text = _HEADER + f"a,6000,1024,{share},V100M16|T4,,,1,,\n"
    (arrival,) = read_trace("t.csv", text).arrivals
    ((_, made),) = pods(read(text.splitlines(), "t.csv"), Wanted("trace"))
    fields = Fields(made["metadata"]), Fields(made["spec"])
    played, _ = read_pod(*fields)
    kind = arrival.kind
    assert kind.containers == played.containers
    assert kind.tolerations == played.tolerations
    assert kind.annotations == played.annotations


def test_pods_that_are_alike_share_what_they_are() -> None:
    text = _HEADER + "a,1,1,0,0,,,,1,,\nb,1,1,0,0,,,,2,,\nc,2,1,0,0,,,,3,,\n"
    a, b, c = (each.kind for each in read_trace("t.csv", text).arrivals)
    assert a is b
    assert a is not c


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name,cpu_milli\n", "t.csv: line 1: there is no column memory_mib and no column num_gpu"),
        (_HEADER + "a,x,1,0,0,,,,1,,\n", "t.csv: line 2: cpu_milli: 'x' is not allowed"),
        (_HEADER + "a,1,1,0,2000,,,,1,,\n", "t.csv: line 2: gpu_milli: '2000' is not allowed"),
    ],
)
def test_mistakes_have_file_line_and_column(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_trace("t.csv", text)
    assert problem in str(caught.value)


def test_a_list_of_nodes_is_a_fleet(tmp_path: Path) -> None:
    text = (
        "sn,cpu_milli,memory_mib,gpu,model\n"
        "n1,96000,393216,2,T4\nn2,96000,393216,2,T4\nn3,64000,262144,0,\n"
    )
    file = tmp_path / "nodes.csv"
    file.write_text(text)
    cluster = cluster_of(load_fleet(str(file), Rules()))
    assert [model.pool.nodes for model in cluster.models] == [2, 1]
    assert cluster.all["cpu"].tolist() == [96_000, 96_000, 64_000]
    assert [kind.type for kind in cluster.cards["NVIDIA"].kinds] == ["NVIDIA-Tesla T4"]


def test_pods_that_want_a_model_fit_on_it_and_on_no_other(tmp_path: Path) -> None:
    words = [*MODELS, "H100-SXM5-80GB"]
    nodes, pods_ = tmp_path / "nodes.csv", _HEADER
    lines = [f"96000,393216,1,{word}\n" for word in words]
    nodes.write_text("cpu_milli,memory_mib,gpu,model\n" + "".join(lines))
    pods_ += "".join(f"{word},1,1,1,1000,{word},,,0,,\n" for word in reversed(words))
    outcome = place(load_fleet(str(nodes), Rules()), read_trace("t.csv", pods_), Rules())
    assert {each.pod: each.pool.rpartition("-")[0] for each in outcome.placements} == {
        word: word.lower() for word in words
    }


def test_a_table_may_come_from_a_spreadsheet(tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text("\ufeffcpu_milli,memory_mib,gpu,model\r\n1000,1024,1,T4\r\n", encoding="utf-8")
    assert cluster_of(load_fleet(str(file), Rules())).size == 1


def test_a_model_that_nobody_knows_is_a_mistake() -> None:
    text = "cpu_milli,memory_mib,gpu,model\n1,1,0,none\n1,1,8,H1000\n"
    with pytest.raises(UsageError, match="line 3: model: 'H1000' is not allowed") as caught:
        read_nodes("n.csv", text)
    assert "hami-mock models nvidia, or of openb's P100, T4" in str(caught.value)


def test_the_bench_has_openb_s_size() -> None:
    rows = bench.nodes_text().splitlines()[1:]
    assert len(rows) == 1213
    assert sum(int(row.split(",")[3]) for row in rows) == 6212
    assert bench.trace_text(50) == bench.trace_text(50)
    assert len(read_trace("t.csv", bench.trace_text(50)).arrivals) == 50
