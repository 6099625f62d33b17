from pathlib import Path

import pytest

from hami_mock.cli.main import main
from hami_mock.settings.settings import load
from hami_mock.settings.template import config_template


def test_a_file_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    assert capsys.readouterr().out == config_template()


def test_a_file_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hami-mock.yaml"
    assert main(["init", "-o", str(file)]) == 0
    assert f"hami-mock plan --config {file}" in capsys.readouterr().out
    assert load({"config": str(file)}).vendors == load({}).vendors
    file.write_text("nvidia-cards: 1\n")
    assert main(["init", "-o", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"hami-mock: init: {str(file)!r} exists: choose another name, or overwrite it with "
        "--force\n"
    )
    assert file.read_text() == "nvidia-cards: 1\n"
    assert main(["init", "--force", "-o", str(file)]) == 0
    assert file.read_text() == config_template()


def test_a_file_that_can_not_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "-o", "/nowhere/x.yaml"]) == 2
    assert "can't write '/nowhere/x.yaml': No such file" in capsys.readouterr().err
