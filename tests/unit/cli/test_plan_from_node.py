"""`plan --source hami`: from a node, or not at all."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from hami_mock.cli.commands import run
from tests.unit.builders import problems_of
from tests.unit.sources.annotated.nodes import NVIDIA, card, cards, node

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


def file_with(folder: Path, *annotations: dict[str, str]) -> str:
    items = [{**node(own), "kind": "Node"} for own in annotations]
    document: Any = items[0] if len(items) == 1 else {"kind": "List", "items": items}
    path = folder / "node.json"
    path.write_text(json.dumps(document))
    return str(path)


def planned(captured: Captured, *arguments: str) -> dict[str, Any]:
    assert run("plan", [*arguments, "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(captured.readouterr().out)
    return found


def test_a_node_in_a_file_says_what_its_companion_would_register(
    tmp_path: Path, capsys: Captured
) -> None:
    found = planned(capsys, "-f", file_with(tmp_path, cards(card("GPU-1"))), "--source", "hami")
    assert found["node"] == "node-a"
    assert [each["uuid"] for each in found["cards"]] == ["GPU-1"]
    assert {row["resource"]: row["count"] for row in found["resources"]} == {
        "nvidia.com/gpucores": 100,
        "nvidia.com/gpumem": 32768,
        "nvidia.com/gpumem-percentage": 100,
    }
    assert found["missing"] == []


def test_the_node_may_come_from_standard_input(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(file_with(tmp_path, cards(card("GPU-1")))).read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert len(planned(capsys, "-f", "-")["resources"]) == 3


def test_what_is_missing_is_said(tmp_path: Path, capsys: Captured) -> None:
    path = file_with(tmp_path, {NVIDIA: "{"})
    (line,) = planned(capsys, "-f", path)["missing"]
    assert line.startswith(f"{NVIDIA}: not valid JSON")
    assert run("plan", ["-f", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "nothing"
    assert lines[4].startswith(f"missing: {NVIDIA}: not valid JSON")


@pytest.mark.parametrize("words", [["plan"], ["scenario", "check", "x"]])
def test_without_a_node_there_is_no_plan(words: list[str]) -> None:
    (line,) = problems_of(lambda: run(words[0], [*words[1:], "--source", "hami"]))
    assert line.startswith("--source hami: the cards come from a real node, but no API")


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    one, none = cards(card("GPU-1")), tmp_path / "none.json"
    none.write_text('{"kind": "List", "items": []}')
    (line,) = problems_of(lambda: run("plan", ["-f", str(none)]))
    assert line == f"-f: {str(none)!r} must have one node, and has 0"
    path = file_with(tmp_path, one, one)
    (line,) = problems_of(lambda: run("plan", ["-f", path, "--node-name", "node-a"]))
    assert line == f"-f: {path!r} must have one node 'node-a', and has 2"
    path = file_with(tmp_path, one)
    (line,) = problems_of(lambda: run("plan", ["-f", path, "--source", "flags"]))
    assert line == "-f: it needs --source hami, which reads the cards from a node"
    config = tmp_path / "fleet.yaml"
    config.write_text("nodes: [{match: a, nvidia-cards: 1}]")
    fleet = ["--config", str(config), "--all-nodes", "--source", "hami"]
    (line,) = problems_of(lambda: run("plan", fleet))
    assert line.startswith("--all-nodes: with --source hami each node has its own cards")


def test_the_demo_refuses(capsys: Captured) -> None:
    (line,) = problems_of(lambda: run("demo", ["--source", "hami"]))
    assert line == "--source hami: the demo has no node with a real plugin"
