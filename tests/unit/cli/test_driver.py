"""`hami-mock driver`."""

import json
from pathlib import Path

import pytest

from hami_mock.cli.main import main
from hami_mock.views.driver import compiled
from tests.unit.views.driver.reading import COMPILED, card, header

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "read", lambda: COMPILED)


def driver(root: Path, *arguments: str) -> int:
    return main(["driver", *arguments, "--driver-root", str(root), "--node-name", "n1"])


def test_all_keeps_and_removes(tmp_path: Path, capsys: Captured) -> None:
    root = tmp_path / "root"
    flags = ("--nvidia-cards", "8", "--nvidia-model", "H100-SXM5-80GB")
    assert driver(root, "all", *flags) == 0
    assert "made" in capsys.readouterr().out
    assert header(root / "state")["card_count"] == 8
    assert card(root / "state", 7)["identity"]["name"] == "NVIDIA H100 80GB HBM3"
    assert driver(root, "all", *flags) == 0
    out = capsys.readouterr().out
    assert "kept" in out
    assert " made" not in out
    assert driver(root, "remove") == 0
    assert "removed" in capsys.readouterr().out
    assert not root.exists()


def test_a_dry_run_is_one_document(tmp_path: Path, capsys: Captured) -> None:
    assert driver(tmp_path / "root", "all", "--dry-run", "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["root"] == str(tmp_path / "root")
    assert told["dry_run"] is True
    assert {"path": "state/cards.bin", "what": "made"} in told["paths"]
    assert told["summary"]["made"] == len([e for e in told["paths"] if e["what"] == "made"])
    assert not (tmp_path / "root").exists()


def test_a_dry_run_says_what_another_run_would_do(tmp_path: Path, capsys: Captured) -> None:
    root = tmp_path / "root"
    assert driver(root, "all") == driver(root, "all", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" would be kept")
    before = header(root / "state")
    assert driver(root, "all", "--dry-run", "--nvidia-cards=5") == 0
    shown = capsys.readouterr().out.splitlines()
    assert ["state/cards.bin", "replaced"] in [line.split() for line in shown]
    assert header(root / "state") == before


def test_the_file_chooses_the_cards(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("nvidia:\n  groups: [{cards: 2, model: T4}, {cards: 1, model: L4}]\n")
    assert driver(tmp_path / "root", "fs", "--config", str(config)) == 0
    names = [card(tmp_path / "root/state", index)["identity"]["name"] for index in range(3)]
    assert names == ["Tesla T4", "Tesla T4", "NVIDIA L4"]


def test_a_card_that_the_kubelet_could_not_bear_is_shown_all_the_same(tmp_path: Path) -> None:
    flags = ("--nvidia-cards", "128", "--nvidia-model", "B200")
    assert driver(tmp_path / "root", "fs", *flags) == 0
    assert header(tmp_path / "root/state")["card_count"] == 128


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["all", "--driver-root", "relative"], "--driver-root: 'relative' is not allowed"),
        (["nothing"], "driver"),
        ([], "driver"),
    ],
)
def test_mistakes_are_named(arguments: list[str], told: str, capsys: Captured) -> None:
    assert main(["driver", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_foreign_folder_is_named_with_the_way_out(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine").write_text("")
    assert driver(tmp_path, "all") == 2
    err = capsys.readouterr().err
    assert f"--driver-root: {str(tmp_path)!r} has 'mine' in it" in err
    assert "choose an empty folder" in err


@pytest.mark.parametrize("command", ["driver", "smi"])
def test_short_help_is_about_cards(command: str, capsys: Captured) -> None:
    told = {}
    for flag in ("-h", "--help"):
        with pytest.raises(SystemExit, match="0"):
            main([command, flag])
        told[flag] = capsys.readouterr().out
    for name in ("--dcgm-listen", "--hami-keep-annotations", "--seed"):
        assert name not in told["-h"]
        assert name in told["--help"]
    assert "--nvidia-cards" in told["-h"]
