import re
from pathlib import Path
from typing import Any

import pytest

from hami_mock.agent import Agent
from hami_mock.cli.top_screen import coloured, frame
from hami_mock.faults.actions import Action, perform
from hami_mock.node.event_kinds import Kind
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.page.snapshot import snapshot
from tests.invented import Work, invent
from tests.unit.builders import NODE

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def make_agent(folder: Path, **flags: str) -> Agent:
    settings = load({"socket-dir": str(folder), "node-name": NODE, **flags})
    return Agent(settings, configured_node(settings, None))


@pytest.fixture
def agent(socket_folder: Path) -> Agent:
    return make_agent(socket_folder)


@pytest.fixture
def busy(agent: Agent) -> dict[str, Any]:
    invent(agent.state)
    perform(Action("fail", ("nvidia/1",), {"xid": 79}), agent.state)
    return {**snapshot(agent), "time": 1_800_000_000.0}


@pytest.fixture
def in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def line_with(lines: list[str], text: str) -> str:
    return next(line for line in lines if text in line)


def test_80_columns(busy: dict[str, Any]) -> None:
    lines = frame(busy, 80)
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("node-a  not ready  7 of 8 cards healthy, 3 pods, ")
    assert len(lines[0]) == 80
    # Without a terminal the bars are plain.
    assert re.fullmatch(
        r"nvidia/0    #{8}\.{6}  60%  #{6}\.{8}    14\.5/32\.0   50°C   200/300",
        line_with(lines, "nvidia/0"),
    )
    assert "  unhealthy: Xid 79 (GPU has fallen off the bus)" in lines
    assert "V100" not in "\n".join(lines)
    pod = line_with(lines, "serving/llm")
    assert re.fullmatch(r"■ serving/llm-\S+ +server +nvidia/1 +\d+% +9216/32768", pod)
    assert line_with(lines, "CardFailed").endswith("bus)")


def test_120_columns_have_models_and_longer_bars(busy: dict[str, Any]) -> None:
    lines = frame(busy, 120)
    assert all(len(line) <= 120 for line in lines)
    card = line_with(lines, "nvidia/0")
    assert "V100-SXM2-32GB" in card
    assert "#" * 14 in card


@pytest.mark.usefixtures("in_colour")
@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_colours_take_no_columns(busy: dict[str, Any], columns: int) -> None:
    lines = frame(busy, columns)
    assert any("\x1b[31m" in line for line in lines)
    widest = max(len(ANSI.sub("", line)) for line in lines)
    assert widest <= columns


@pytest.mark.usefixtures("in_colour")
def test_a_pod_has_its_colour_and_an_ill_card_is_red(busy: dict[str, Any]) -> None:
    lines = frame(busy, 120)
    usage = busy["cards"]["nvidia/0"]["containers"]["ml/train-resnet-0/main"]
    mark = coloured("■", usage["hue"])
    assert sum(mark in line for line in lines) == 3
    assert line_with(lines, "nvidia/1").startswith("\x1b[31mnvidia/1")
    assert line_with(lines, "nvidia/0").startswith("\x1b[32mnvidia/0")


@pytest.mark.parametrize("lines", [5, 10, 20, 24, 50])
def test_what_does_not_fit_is_cut_and_said_to_be(busy: dict[str, Any], lines: int) -> None:
    shown = frame(busy, 80, lines)
    assert len(shown) <= lines
    if lines >= 20:
        assert any("CardFailed" in line for line in shown)
        assert any("POD" in line for line in shown)
    assert any("lines more" in line for line in shown) == (lines < 50)


def test_many_pods_leave_room_for_cards_and_events(agent: Agent) -> None:
    work: Work = {("ns", f"pod-{number}", "main"): {"nvidia/0": (1, 10)} for number in range(9)}
    invent(agent.state, work=work)
    agent.state.events.add(Kind.XID, "nvidia/0", "something")
    shown = frame(snapshot(agent), 80, 24)
    assert sum(line.startswith(("nvidia/", "mlu/", "iluvatar/", "ascend/")) for line in shown) == 8
    assert any("something" in line for line in shown)
    assert any("lines more" in line for line in shown)


def test_an_empty_node(socket_folder: Path) -> None:
    names = ("nvidia", "mlu", "iluvatar", "ascend")
    agent = make_agent(socket_folder, **{f"{name}-cards": "0" for name in names})
    lines = frame(snapshot(agent), 80)
    assert "This node has no cards." in lines
    assert "It isn't known who holds what: the kubelet can't be asked." in lines
    assert "Nothing has happened yet." in lines


def test_long_names_are_shortened(busy: dict[str, Any]) -> None:
    busy["node"] = "n" * 200
    busy["problems"] = ["x" * 500]
    busy["cards"] = {f"{'v' * 300}/0": {**busy["cards"]["nvidia/0"], "model": "m" * 300}}
    for columns in (80, 120):
        assert all(len(line) <= columns for line in frame(busy, columns))


def test_a_scenario_says_how_far_it_is(busy: dict[str, Any]) -> None:
    busy["scenario"] = {
        "name": "drill", "seed": 7, "elapsed": 65.0, "total": 120.0, "next_at": 70.0,
        "next": "recover all", "ending": "",
    }  # fmt: skip
    lines = frame(busy, 80)
    assert "scenario drill: seed 7, 1m5s of 2m" in lines
    assert "next at 1m10s: recover all" in lines
