"""export-kwok writes what kubectl and KWOK take; what they make of it, tests/fleet proves."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hami_mock.cli.main import main

FILE = """\
hami: true
nvidia: {cards: 0}
mlu: {cards: 0}
iluvatar: {cards: 0}
ascend: {cards: 0}
pools:
  - {name: a, nodes: 3, rack: 2, nvidia: {cards: 2, model: T4}}
  - {name: b, nodes: 1, ascend: {cards: 1, model: Ascend910B3}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FILE)
    return path


def _export(file: Path, *words: str) -> int:
    return main(["fleet", "export-kwok", str(file), *words])


def _documents(text: str) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all(text)]


def test_a_folder_gets_nodes_and_kwoks_configuration(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "made" / "here"
    assert _export(file, "-o", str(folder), "--name", "mine") == 0
    nodes = _documents((folder / "nodes.yaml").read_text())
    assert [node["metadata"]["name"] for node in nodes] == ["a-0", "a-1", "a-2", "b-0"]
    assert {node["metadata"]["labels"]["hami-mock.io/fleet"] for node in nodes} == {"mine"}
    assert nodes[2]["metadata"]["labels"]["hami-mock.io/rack"] == "a-r1"
    assert nodes[0]["status"]["allocatable"]["nvidia.com/gpumem"] == "30720"
    options, *stages = _documents((folder / "kwok.yaml").read_text())
    assert options["kind"] == "KwokConfiguration"
    assert options["options"]["nodeLeaseDurationSeconds"] == 400
    assert {stage["kind"] for stage in stages} == {"Stage"}
    told = capsys.readouterr().out
    assert f"kubectl create -f {folder}/nodes.yaml" in told
    assert f"kwok --config {folder}/kwok.yaml" in told


def test_standard_output_gets_what_kubectl_applies(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _export(file) == 0
    documents = _documents(capsys.readouterr().out)
    assert [each["kind"] for each in documents] == ["Node"] * 4 + ["Stage"] * 5
    assert "hami-mock-hami-bind" not in {each["metadata"]["name"] for each in documents}


def test_kwok_takes_the_part_of_device_plugins_only_when_told_so(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _export(file, "--bind", "stages") == 0
    documents = {each["metadata"]["name"]: each for each in _documents(capsys.readouterr().out)}
    mark, unlock = documents["hami-mock-hami-bind"]["spec"]["steps"]
    assert yaml.safe_load(mark["patch"]["template"]) == {
        "annotations": {"hami.io/bind-phase": "success"}
    }
    # Without a subresource KWOK would make a deleted node anew.
    assert unlock["apply"]["subresource"] == "status"
    assert "hami.io/mutex.lock" in unlock["apply"]["template"]


def test_a_file_is_no_folder(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    assert _export(file, "-o", str(taken)) == 2
    assert f"--output: '{taken}' is a file: name a folder" in capsys.readouterr().err
