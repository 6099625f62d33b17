import io
import json
import re
from pathlib import Path

import pytest

from hami_mock.cli.main import main
from hami_mock.cli.whatif import NOT_ENOUGH

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples/whatif"
FLEET = str(EXAMPLES / "fleet.yaml")
ALL = [str(EXAMPLES / name) for name in ("inference.yaml", "training.yaml")]
TRACE = str(EXAMPLES / "trace.csv")

JUDGES = ["--judge", "cluster", "--hami-scheduler", "/"]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """The flags of two nodes with two cards each, and of ten pods of which eight fit."""
    fleet, pods = tmp_path / "fleet.yaml", tmp_path / "pods.yaml"
    fleet.write_text(
        "vendors: [nvidia]\npools: [{name: t4, nodes: 2, nvidia: {cards: 2, model: T4}}]\n"
    )
    limits = "{nvidia.com/gpu: 1, nvidia.com/gpumem: 7000}"
    containers = f"[{{name: main, resources: {{limits: {limits}}}}}]"
    pods.write_text(
        "kind: Deployment\nmetadata: {name: web}\n"
        f"spec: {{replicas: 10, template: {{spec: {{containers: {containers}}}}}}}\n"
    )
    return ["--fleet", str(fleet), "--workload", str(pods)]


def whatif(*arguments: str) -> int:
    return main(["whatif", "--fleet", FLEET, *arguments])


def errors(captured: Captured) -> list[str]:
    found = captured.readouterr()
    assert found.out == ""
    return [line.removeprefix("hami-mock: ") for line in found.err.splitlines()]


def test_the_examples_are_answered(capsys: Captured) -> None:
    assert whatif("--workload", *ALL) == NOT_ENOUGH
    out = capsys.readouterr().out
    assert re.match(r"\d+ of \d+ pods fit; \d+ don't: \d+ for CPU", out)
    assert "What would help:\n- Buy " in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_docs_show_what_the_examples_say(capsys: Captured) -> None:
    told = (ROOT / "docs/whatif.md").read_text().split("```\n")[3]
    assert whatif("--workload", *ALL) == NOT_ENOUGH
    out = capsys.readouterr().out
    begin, end = told.split("…\n")
    assert out.startswith(begin)
    assert out.endswith(end)


def test_the_trace_fits_because_pods_end_and_without_ends_it_does_not(capsys: Captured) -> None:
    assert whatif("--workload", TRACE) == 0
    assert capsys.readouterr().out.startswith("All 160 pods fit.\n")
    assert whatif("--workload", TRACE, "--stay", "--policy", "hami", "--buy", "cpu") == NOT_ENOUGH


def test_where_pods_end_the_report_is_of_the_fullest_moment(capsys: Captured) -> None:
    assert whatif("--workload", TRACE) == 0
    assert "\nWhat is taken when the fleet is fullest (after 4h" in capsys.readouterr().out
    assert whatif("--workload", TRACE, "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["moment"]["running"] > 50
    assert told["total"]["memory"]["share"] > 0.5
    shares = [share for _, share, _ in told["fragmentation"]]
    assert len(shares) > 50
    assert max(shares) > 0


def test_kube_scheduler_spreads_unless_told_otherwise(capsys: Captured) -> None:
    kube = ("--workload", ALL[0], "--scheduler", "kube")
    assert whatif(*kube) == 0
    assert "by kube-scheduler alone, policy spread." in capsys.readouterr().out
    assert whatif(*kube, "--policy", "binpack") == NOT_ENOUGH
    assert "by kube-scheduler alone, policy binpack." in capsys.readouterr().out


def test_json_text_and_page_tell_the_same(
    small: list[str], capsys: Captured, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    arguments = ["whatif", *small, "--policy", "spread", "--buy", "t4"]
    assert main([*arguments, "-o", "json", "--report", str(file)]) == NOT_ENOUGH
    told = json.loads(capsys.readouterr().out)
    assert told["answer"]["fit"] == len(told["placed"]) == 8
    assert told["answer"]["refused"] == len(told["refused"]) == 2
    assert [(each["pool"], each["nodes"]) for each in told["purchases"]] == [("t4", 1)]
    assert main([*arguments, "-o", "html"]) == NOT_ENOUGH
    page = capsys.readouterr().out
    answer = "8 of 10 pods fit;"
    # In the title and in the heading. How long it took is nowhere.
    assert page.count(answer) == 2
    assert page == file.read_text()
    main(arguments)
    assert capsys.readouterr().out.startswith(answer)


@pytest.mark.parametrize(("share", "code"), [("80", 0), ("81", NOT_ENOUGH)])
def test_the_exit_code_says_if_as_many_fit_as_should(
    share: str, code: int, small: list[str], capsys: Captured
) -> None:
    assert main(["whatif", *small, "--fit", share]) == code
    wanted = {"80": 8, "81": 9}[share]
    assert f"\nMore nodes, so that {wanted} pods fit:\n" in capsys.readouterr().out


def test_nodes_may_be_added_first(small: list[str], capsys: Captured) -> None:
    assert main(["whatif", *small, "--add", "t4=1"]) == 0
    assert "On 3 nodes with 6 cards (+1 of t4), by" in capsys.readouterr().out
    assert main(["whatif", *small, "--add", "t4=-1", "-o", "json"]) == NOT_ENOUGH
    assert json.loads(capsys.readouterr().out)["answer"]["fit"] == 4


def test_before_anything_is_bought_there_may_be_no_nodes(
    small: list[str], capsys: Captured, tmp_path: Path
) -> None:
    fleet = Path(small[1])
    fleet.write_text(fleet.read_text().replace("nodes: 2", "nodes: 0"))
    page = tmp_path / "report.html"
    assert main(["whatif", *small, "--buy", "t4", "--report", str(page)]) == NOT_ENOUGH
    out = capsys.readouterr().out
    assert out.startswith("0 of 10 pods fit; 10 don't: 10 for any node at all.\nOn 0 nodes, by")
    assert "\n- Buy 3 more nodes of t4: all pods fit.\n" in out
    assert "Buy 3 more nodes of t4: all pods fit." in page.read_text()
    assert main(["whatif", *small, "--scheduler", "kube", "--buy", "t4"]) == NOT_ENOUGH
    # Whose cards they are is known of the nodes that are added.
    capsys.readouterr()
    assert main(["whatif", *small, "--add", "t4=3", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["memory"]["fragmented"] > 0


def test_a_seed_gives_the_same_report_twice(small: list[str], capsys: Captured) -> None:
    outs = []
    for _ in range(2):
        main(["whatif", *small, "--seed", "3", "--policy", "hami", "-o", "json"])
        told = json.loads(capsys.readouterr().out)
        told["answer"].pop("seconds")
        outs.append(told)
    assert outs[0] == outs[1]
    assert outs[0]["rules"]["seed"] == 3
    main(["whatif", *small, "--policy", "hami", "-o", "json"])
    assert json.loads(capsys.readouterr().out)["placed"] != outs[0]["placed"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--policy", "best"], "whatif: argument --policy: 'best' is not allowed: it must be one"),
        (["--add", "a100"], "whatif: argument --add: 'a100' is not allowed: it must be POOL=N"),
        (["--add", "a100=x"], "whatif: argument --add: 'a100=x' is not allowed"),
        (["--buy", "a10"], "--buy: the fleet has no pool 'a10'; did you mean a100?"),
        (["--fit", "0"], "whatif: argument --fit: '0' is not allowed: it must be a whole number"),
        (["--report", "/no/such/place.html"], "--report: '/no/such/place.html': there is no such"),
        (["--report", "/"], "--report: '/' is a folder"),
        (["--hami-scheduler", "/x"], "--hami-scheduler: it needs --judge cluster"),
        ([*JUDGES, "--scheduler", "kube"], "--hami-scheduler: --scheduler kube leaves HAMi out"),
        (JUDGES, "--hami-scheduler: '/' isn't a program: name HAMi's scheduler"),
        (["--workload", "/no/such.yaml"], "can't read the workload '/no/such.yaml': No such file"),
    ],
)
def test_mistakes_name_the_flag(arguments: list[str], problem: str, capsys: Captured) -> None:
    assert whatif("--workload", ALL[0], *arguments) == 2
    assert errors(capsys)[0].startswith(problem)


def test_a_mistake_in_a_file_names_it_and_the_key(tmp_path: Path, capsys: Captured) -> None:
    fleet, pods = tmp_path / "fleet.yaml", tmp_path / "pods.yaml"
    fleet.write_text("pools: [{name: a, nodes: many}]\n")
    assert main(["whatif", "--fleet", str(fleet), "--workload", ALL[0]]) == 2
    assert errors(capsys)[0].startswith(f"{fleet}: pools[0].nodes: 'many' is not allowed")
    pods.write_text("kind: Pod\nmetadata: {name: p}\nspec: {containers: 7}\n")
    assert whatif("--workload", str(pods)) == 2
    assert errors(capsys)[0].startswith(f"{pods}: document 1.spec.containers:")


def test_without_a_fleet_or_a_workload_there_is_nothing_to_find_out(capsys: Captured) -> None:
    assert main(["whatif"]) == 2
    assert errors(capsys) == [
        "whatif: the following arguments are required: --fleet, --workload",
    ]


def test_progress_is_for_who_looks_at_it(
    small: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["whatif", *small])
    assert capsys.readouterr().err == ""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    main(["whatif", *small])
    assert "placing by the policy hami …" in shown.getvalue()
    assert "trying 1 more nodes of t4 …" in shown.getvalue()
    assert shown.getvalue().endswith("\r\x1b[K")


def test_the_examples_of_the_help_can_be_run() -> None:
    named = re.findall(r"examples/whatif/\S+", (ROOT / "src/hami_mock/cli/whatif.py").read_text())
    assert named
    assert all((ROOT / name.rstrip('",')).is_file() for name in named)


def test_nodes_that_are_added_twice_add_up(small: list[str], capsys: Captured) -> None:
    assert main(["whatif", *small, "--add", "t4=2", "--add", "t4=-1"]) == 0
    assert capsys.readouterr().out.startswith(
        "All 10 pods fit.\nOn 3 nodes with 6 cards (+1 of t4)"
    )
