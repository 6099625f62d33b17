import json
from pathlib import Path

import jsonschema
import pytest

from hami_mock.cli.main import main
from hami_mock.cli.schema import SCHEMAS

FOLDER = Path(__file__).parents[3] / "schemas"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed_as_it_is_kept(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    printed = capsys.readouterr().out
    jsonschema.Draft7Validator.check_schema(json.loads(printed))
    assert (FOLDER / f"{name}.json").read_text() == printed


def test_another_kind_of_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "pods"]) == 2
    assert "config" in capsys.readouterr().err
