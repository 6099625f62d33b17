"""What commands of a fleet show, and what they refuse."""

from pathlib import Path

import pytest

from hami_mock.cli.fleet import status
from hami_mock.cli.fleet.dispatch import parser
from hami_mock.cli.main import main

Captured = pytest.CaptureFixture[str]
FILE = """\
hami: true
vendors: nvidia
pools:
  - {name: cut, nodes: 2, nvidia: {cards: 8, model: A100-SXM4-80GB, mig: "3g.40gb,2g.20gb"}}
  - {name: cuts, nodes: 2, nvidia: {cards: 8, model: A100-SXM4-80GB, mode: mig}}
  - {name: whole, nodes: 2, nvidia: {cards: 8, model: A100-SXM4-80GB}}
  - {name: none, nodes: 2, nvidia: {cards: 0}}
"""


def _dry_run(tmp_path: Path, text: str) -> int:
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    return main(["fleet", "up", str(file), "--dry-run"])


def test_a_dry_run_says_which_cards_are_cut(tmp_path: Path, capsys: Captured) -> None:
    assert _dry_run(tmp_path, FILE) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()[1:5]}
    assert "  8 x A100-SXM4-80GB (MIG 3g.40gb,2g.20gb)  " in rows["cut"]
    assert "  8 x A100-SXM4-80GB (MIG)  " in rows["cuts"]
    assert "MIG" not in rows["whole"]


def test_a_pool_without_cards_has_no_empty_table(tmp_path: Path, capsys: Captured) -> None:
    assert _dry_run(tmp_path, FILE) == 0
    out = capsys.readouterr().out
    assert "A node of whole offers" in out
    assert "A node of none offers" not in out


@pytest.mark.parametrize("columns", [80, 100])
def test_nothing_is_wider_than_the_terminal(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert _dry_run(tmp_path, FILE.replace("nodes: 2", "nodes: 20000")) == 0
    prose = [line for line in capsys.readouterr().out.splitlines() if "  " not in line]
    assert max(map(len, prose)) <= columns
    help_lines = parser("up").format_help().splitlines()
    assert columns - 10 < max(map(len, help_lines)) <= columns
    writes = {
        "per_second": 333.3,
        "limit": 1000.0,
        "allowed": 250.5,
        "peak": 456,
        "total": 123_456,
        "refused": 17,
        "answer_ms": 12.3,
    }
    told = {"pools": [], "fleet": "a", "writes": writes, "failures": {}, "parts": {}}
    lines = [*status.lines({**told, "scenario": None})]
    assert max(map(len, lines)) <= columns
    assert " ".join(lines).endswith("each in 12.3 ms")


def test_a_section_that_is_not_there_is_refused(tmp_path: Path, capsys: Captured) -> None:
    section = "nodes: [{match: 'gpu-*', nvidia: {cards: 3, model: T4}}]\n"
    pool = "pools: [{name: a, nodes: 1, match: NAME}]\nvendors: nvidia\n"
    assert _dry_run(tmp_path, section + pool.replace("NAME", "gpu-1")) == 0
    assert "3 x T4" in capsys.readouterr().out
    assert _dry_run(tmp_path, section + pool.replace("NAME", "gpx-1")) == 2
    told = "pools[0].match: no section of `nodes` matches 'gpx-1'"
    assert f"{tmp_path / 'fleet.yaml'}: {told}" in capsys.readouterr().err


def test_the_ways_of_export_kwok_are_told_by_their_names(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "fleet.yaml").write_text(FILE)
    assert main(["fleet", "export-kwok", str(tmp_path / "fleet.yaml"), "--bind", "agent"]) == 2
    err = capsys.readouterr().err
    assert "none" in err
    assert "stages" in err
    assert "Bind" not in err
