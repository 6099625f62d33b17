import json
from typing import Any

import pytest
import yaml

from hami_mock.cli.output import show

Captured = pytest.CaptureFixture[str]
DATA: Any = [{"name": "a", "reasons": ["no power", "zu heiß"]}, {"name": "b", "reasons": []}]


@pytest.mark.parametrize("data", [DATA, DATA[0], None])
def test_json_and_yaml_are_one_document_that_says_the_same(data: Any, capsys: Captured) -> None:
    show(data, "json", ())
    assert json.loads(capsys.readouterr().out) == data
    show(data, "yaml", ())
    assert yaml.safe_load(capsys.readouterr().out) == data


def test_a_stream_is_a_document_for_each_thing(capsys: Captured) -> None:
    show(DATA, "json", (), stream=True)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == DATA
    show(DATA, "yaml", (), stream=True)
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == DATA


def test_a_table_is_its_lines(capsys: Captured) -> None:
    show(DATA, "table", iter(["A  B", "1  2"]))
    assert capsys.readouterr().out == "A  B\n1  2\n"
