"""`hami-mock driver`."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hami_mock.cli.main import main
from hami_mock.views.driver import compiled
from hami_mock.views.driver.root import MANIFEST
from tests.unit.views.driver.reading import COMPILED, card, header

_NOBODY = 65534
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
    assert driver(root, "remove") == driver(root, "remove", "--dry-run") == 0
    assert capsys.readouterr().out == f"{root}: nothing to do\n" * 2


def test_a_root_is_for_everybody_whatever_the_umask(tmp_path: Path) -> None:
    root, before = tmp_path / "there/root", os.umask(0o077)
    try:
        assert driver(root, "all") == 0
    finally:
        os.umask(before)
    made = {each for each in (root.parent, *root.rglob("*"), root) if not each.is_symlink()}
    assert {each.stat().st_mode & 0o777 for each in made if each.is_dir()} == {0o755}
    # The list of what was made is nobody else's business.
    files = {each for each in made if each.is_file()} - {root / MANIFEST}
    assert {each.stat().st_mode & 0o444 for each in files} == {0o444}
    assert root / "state/cards.bin" in files


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
    others = ("--dcgm-listen", "--socket-dir", "--labels", "--dra", "--nvidia-split", "--driver on")
    assert not any(name in told[flag] for name in others for flag in told)
    assert "--source" not in told["-h"]
    assert "--source" in told["--help"]
    assert "--nvidia-cards" in told["-h"]


@pytest.mark.parametrize("command", ["driver", "smi"])
def test_flags_that_change_no_card_are_refused(command: str, capsys: Captured) -> None:
    words = ["all"] if command == "driver" else []
    wrong = ["--driver", "off", "-http_listen=:1", "--nvidia-split=3"]
    assert main([command, *words, *wrong, "--nvidia-cards=1"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"hami-mock: {flag}: hami-mock {command} doesn't use this flag: leave it out"
        for flag in ("--driver", "--http-listen", "--nvidia-split")
    ]


@pytest.mark.parametrize("version", ["449.99", "400.10", "0.1"])
def test_a_driver_whose_cuda_is_not_known_is_refused(
    version: str, tmp_path: Path, capsys: Captured
) -> None:
    assert driver(tmp_path / "root", "all", f"--driver-version={version}") == 2
    told = f"--driver-version: {version!r} is not allowed: it must be a driver version such as"
    assert told in (err := capsys.readouterr().err)
    assert "450 or newer" in err


def test_each_half_tells_of_a_version_that_the_other_was_made_for(
    tmp_path: Path, capsys: Captured
) -> None:
    root, other = tmp_path / "root", "--driver-version=550.54.15"

    def notices() -> list[str]:
        out = capsys.readouterr().out.splitlines()
        return [line.partition(": ")[2] for line in out if line.startswith("notice: ")]

    assert driver(root, "fs", other) == driver(root, "all") == 0
    notices()
    assert driver(root, "fs", other) == 0
    (notice,) = notices()
    assert notice.startswith("lib64/libnvidia-ml.so.580.95.05: this isn't version 550.54.15: ")
    assert driver(root, "fs") == 0
    assert notices() == []
    assert driver(root, "driver", other) == 0
    (notice,) = notices()
    assert notice.startswith("proc/driver/nvidia/version and ")
    assert "of another version" in notice
    assert driver(root, "all", other) == 0
    assert notices() == []


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder that this process can't write in while it runs the test, whoever it is."""
    with tempfile.TemporaryDirectory(prefix="hm-") as name:
        folder = Path(name)
        folder.chmod(0o555)
        # Root may write anywhere.
        before = os.geteuid()
        if before == 0:
            os.seteuid(_NOBODY)
        try:
            yield folder
        finally:
            os.seteuid(before)
            folder.chmod(0o755)


def test_a_dry_run_says_that_it_could_not_write(locked: Path, capsys: Captured) -> None:
    told = f"hami-mock: --driver-root: {str(locked)!r} can't be written"
    for words in (["--dry-run"], []):
        assert driver(locked / "deep" / "root", "all", *words) == 1
        out, err = capsys.readouterr()
        assert "would be" not in out
        assert err.startswith(told) or (not words and "can't be written: Permission denied" in err)


def test_a_dry_run_of_remove_says_that_it_could_not_write(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert driver(tmp_path, "all") == 0
    asked: list[Path] = []

    def access(path: Path, _mode: int, *, effective_ids: bool) -> bool:
        asked.append(path)
        return not effective_ids or path != tmp_path / "lib64"

    monkeypatch.setattr(os, "access", access)
    assert driver(tmp_path, "remove", "--dry-run") == 1
    told = f"--driver-root: {str(tmp_path / 'lib64')!r} can't be written: run as root"
    assert told in capsys.readouterr().err
    assert tmp_path in asked
