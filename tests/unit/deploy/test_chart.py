"""What can be told of the chart without helm; `make e2e` renders and installs it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.unit.deploy.program import ROOT, flags, planned, vendors

CHART = ROOT / "charts" / "hami-mock"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
KINDS_OF_NODES = sorted((CHART / "ci").glob("*.yaml"))
OF_A_VENDOR = SCHEMA["definitions"]["vendor"]["properties"]


def test_it_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert chart["appVersion"] == project["version"]
    manifest = (ROOT / "manifests" / "k8s-mock-plugin.yaml").read_text()
    assert f"image: {VALUES['image']['repository']}:{chart['appVersion']}\n" in manifest


def test_the_schema_has_every_value_and_no_other() -> None:
    assert set(SCHEMA["properties"]) - {"global"} == set(VALUES)
    for name, told in SCHEMA["properties"].items():
        if told.get("additionalProperties") is False and name != "vendors":
            assert set(told["properties"]) == set(VALUES[name])


def test_the_schema_has_every_vendor_with_what_its_flags_take() -> None:
    assert set(SCHEMA["properties"]["vendors"]["properties"]) == vendors()
    known = flags()
    for option in OF_A_VENDOR:
        assert any(f"{vendor}-{option}" in known for vendor in vendors()), option


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"driver": {"enabled": True, "belowNvidiaPlugin": True}}, None),
        ({"driver": {"enabled": False, "belowNvidiaPlugin": True}}, "driver.enabled"),
        ({"driver": {"enabled": True, "belowNvidiaPlugin": True}, "mode": "hami"}, "mode"),
        ({"driver": {"enabled": True}, "mode": "hami"}, None),
    ],
)
def test_the_schema_refuses_what_does_not_go_with_nvidias_plugin(
    values: dict[str, Any], wrong: str | None
) -> None:
    errors = jsonschema.Draft7Validator(SCHEMA).iter_errors({**VALUES, **values})
    found = [".".join(map(str, error.absolute_path)) for error in errors]
    assert found == ([wrong] if wrong else [])


def test_every_value_is_used_by_a_template() -> None:
    text = "".join(file.read_text() for file in (CHART / "templates").iterdir())
    assert set(re.findall(r"\.Values\.(\w+)", text)) == set(VALUES)


@pytest.mark.parametrize("file", KINDS_OF_NODES, ids=lambda file: file.stem)
def test_the_program_accepts_the_cards_of_a_kind_of_node(file: Path) -> None:
    values = yaml.safe_load(file.read_text())
    variables = {"HAMI_MOCK_HAMI": "on"} if values.get("mode") == "hami" else {}
    for vendor, options in values.get("vendors", {}).items():
        for option, value in options.items():
            variables[f"HAMI_MOCK_{vendor}_{option}".upper().replace("-", "_")] = str(value)
    assert planned(variables)


PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), CHART / "README.md"]
INSTALLS = [
    pytest.param(command, id=f"{page.parent.name}/{page.name}: {command}")
    for page in PAGES
    for command in re.findall(
        r"^helm install .*", page.read_text().replace("\\\n", ""), re.MULTILINE
    )
    if "vendors." in command
]


@pytest.mark.parametrize("command", INSTALLS)
def test_the_program_accepts_the_cards_of_a_command_in_the_docs(command: str) -> None:
    told = re.findall(r"--set vendors\.([a-z0-9]+)\.([a-z-]+)=(\S+)", command)
    assert len(told) == command.count("vendors.")
    assert planned(
        {
            f"HAMI_MOCK_{vendor}_{option}".upper().replace("-", "_"): value.strip('"')
            for vendor, option, value in told
        }
    )


def test_the_program_accepts_the_files_of_the_values(tmp_path: Path) -> None:
    written: dict[str, Any] = {}
    for key in ("fleet", "scenario"):
        (value,) = (
            values[key]
            for values in map(yaml.safe_load, map(Path.read_text, KINDS_OF_NODES))
            if key in values
        )
        written[key] = tmp_path / f"{key}.yaml"
        written[key].write_text(yaml.safe_dump(value))
    files = (f"--config={written['fleet']}", f"--scenario={written['scenario']}")
    assert planned({}, *files, "--node-name=a100-7")["nvidia.com/gpu"] == 80
