import re
from pathlib import Path
from typing import Any

import pytest

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.screen import frame
from hami_mock.fleet.snapshot import Snapshot
from tests.invented_fleet import assigned_pod, invented_fleet, place, work

ANSI = re.compile(r"\x1b\[[0-9;]*m")
MANY = """
vendors: [nvidia]
pools:
  - {name: big, nodes: 4000, nvidia: {cards: 1, model: T4}}
  - {name: small, nodes: 3, nvidia: {cards: 1, model: T4}}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return invented_fleet(tmp_path)


@pytest.fixture
def in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hami_mock.fleet.screen.is_unicode", lambda: False)


def shown(fleet: Fleet, **more: Any) -> dict[str, Any]:
    snapshot = Snapshot(fleet)
    snapshot.look()
    return {**snapshot.data(), "time": 1_800_000_000.0, **more}


def below(lines: list[str], name: str) -> list[str]:
    """The lines of a pool's nodes."""
    start = next(i for i, line in enumerate(lines) if line.startswith(f"{name}  "))
    return lines[start + 2 : lines.index("", start)]


def fill(fleet: Fleet, node: str, percent: int) -> None:
    place(fleet, node, assigned_pod("p", ("GPU-1", 81920 * 8 * percent // 100, 0)))


def test_a_node_is_a_sign_that_is_the_higher_the_fuller_it_is(fleet: Fleet) -> None:
    for number, percent in enumerate((0, 1, 13, 30, 45, 60, 70, 80, 99, 100)):
        if percent:
            fill(fleet, f"a100-{number if number < 8 else number + 8}", percent)
    (line,) = below(frame(shown(fleet), 80, 24), "a100")
    # The second zone stands behind a line.
    assert line == "·▁▂▃▄▅▆▇██" + 6 * "·" + "│" + 8 * "·"


@pytest.mark.usefixtures("plain_text")
def test_where_only_ascii_can_be_shown_signs_are_digits(fleet: Fleet) -> None:
    for number, percent in enumerate((0, 1, 30, 60, 89, 100)):
        if percent:
            fill(fleet, f"a100-{number}", percent)
    lines = frame(shown(fleet), 80, 24)
    assert below(lines, "a100")[0].startswith(".1479#..")
    assert all(line.isascii() for line in lines)


def test_what_is_wrong_has_signs_of_its_own(fleet: Fleet) -> None:
    fleet.act("fail", fleet.find(["a100-1:0"]))
    fleet.act("stop-node", fleet.find(["a100-2"]))
    fleet.act("degrade", fleet.find(["a100-3:0"]))
    fleet.members["a100-4"].is_ready = False
    fleet.members["a100-5"].is_there = False
    lines = frame(shown(fleet), 80, 24)
    assert below(lines, "a100")[0].startswith("·!!~/-··")
    assert "a100  24 nodes, 23 there, 22 ready, 1 card failed, 0 pods, 8 x A100-SXM4-80GB" in lines
    assert re.match(
        r"demo  30 nodes, 2 not ready, 3 with faults, 0 pods +\d\d:\d\d:\d\d$", lines[0]
    )


def test_one_is_not_many(tmp_path: Path) -> None:
    fleet = invented_fleet(tmp_path, "pools: [{name: a, nodes: 1, vendors: nvidia}]")
    place(fleet, "a-0", assigned_pod("p", ("GPU-1", 1000, 0)))
    lines = frame(shown(fleet), 80)
    assert lines[0].startswith("demo  1 node, all ready, 1 pod  ")
    assert any(line.startswith("a  1 node, 1 ready, 1 pod, ") for line in lines)


def test_more_nodes_than_fit_share_a_sign_and_the_worst_shows(tmp_path: Path) -> None:
    fleet = invented_fleet(tmp_path, MANY)
    fleet.act("fail", fleet.find(["big-2999"]))
    lines = frame(shown(fleet), 80, 24)
    signs = "".join(below(lines, "big"))
    (each,) = re.findall(r"(\d+) nodes a sign", "\n".join(lines))
    assert len(signs) == -(-4000 // int(each))
    assert signs.count("!") == 1
    assert signs.index("!") == 2999 // int(each)
    assert below(lines, "small") == ["···"]


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("lines", [5, 12, 24, 60])
@pytest.mark.usefixtures("in_colour")
def test_it_fits_and_says_what_has_happened(fleet: Fleet, columns: int, lines: int) -> None:
    work(fleet)
    fleet.act("fail", fleet.find(["rack=a100-r1"]), {"reason": "no power"})
    found = frame(shown(fleet), columns, lines)
    assert len(found) <= lines
    assert max(len(ANSI.sub("", line)) for line in found) <= columns
    assert any("no power" in line for line in found) == (lines > 5)


@pytest.mark.usefixtures("in_colour")
def test_colours_and_blinking_where_the_terminal_has_them(fleet: Fleet) -> None:
    fleet.act("fail", fleet.find(["a100-1:0"]))
    fill(fleet, "a100-0", 100)
    (line,) = below(frame(shown(fleet), 80, 24), "\x1b[1ma100\x1b[0m")
    assert line.startswith("\x1b[38;5;63m█\x1b[0m\x1b[31;1;5m!\x1b[0m")


def test_without_an_end_every_node_is_a_sign_of_its_own(tmp_path: Path) -> None:
    lines = frame(shown(invented_fleet(tmp_path, MANY)), 80)
    assert len("".join(below(lines, "big"))) == 4000
    assert lines[-1] == "Nothing has happened yet."


def test_more_pools_than_fit_are_counted(tmp_path: Path) -> None:
    pools = "".join(f"  - {{name: p{n}, nodes: 2}}\n" for n in range(40))
    fleet = invented_fleet(tmp_path, f"vendors: [nvidia]\npools:\n{pools}")
    lines = frame(shown(fleet), 80, 24)
    shown_pools = sum(bool(re.match(r"p\d+  ", line)) for line in lines)
    assert f"… and {40 - shown_pools} pools more" in lines
    assert shown_pools >= 3


def test_writes_are_told_where_they_are_known(fleet: Fleet) -> None:
    assert "12.5 writes/s" in frame(shown(fleet, writes={"per_second": 12.5}), 80)[0]


def test_the_head_leaves_out_what_does_not_fit(fleet: Fleet) -> None:
    assert re.match(
        r"demo  30 nodes, all ready, 0 pods +\d\d:\d\d:\d\d$",
        frame(shown(fleet, writes={"per_second": 12.5}), 50)[0],
    )


def test_a_fleet_without_pools(tmp_path: Path) -> None:
    assert "This fleet has no pools." in frame(shown(Fleet("empty", ())), 80)
