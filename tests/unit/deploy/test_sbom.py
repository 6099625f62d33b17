"""`make sbom`: what the image installs, in CycloneDX, and under which licences."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.unit.deploy.program import ROOT

RUN = (ROOT / "requirements" / "run.txt").read_text()

# What CycloneDX 1.6 asks of the fields that we use.
LICENCE = {
    "oneOf": [
        {
            "required": ["license"],
            "additionalProperties": False,
            "properties": {
                "license": {"required": ["id"], "properties": {"id": {"type": "string"}}}
            },
        },
        {
            "required": ["expression"],
            "additionalProperties": False,
            "properties": {"expression": {"type": "string"}},
        },
    ]
}
COMPONENT: dict[str, Any] = {
    "type": "object",
    "required": ["type", "name"],
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["application", "library"]},
        "bom-ref": {"type": "string", "minLength": 1},
        "name": {"type": "string"},
        "version": {"type": "string", "maxLength": 1024},
        "purl": {"type": "string"},
        "licenses": {"type": "array", "items": LICENCE, "minItems": 1, "maxItems": 1},
        "hashes": {
            "type": "array",
            "items": {
                "required": ["alg", "content"],
                "additionalProperties": False,
                "properties": {
                    "alg": {"const": "SHA-256"},
                    "content": {"pattern": "^[a-fA-F0-9]{64}$"},
                },
            },
        },
    },
}
SCHEMA = {
    "type": "object",
    "required": ["bomFormat", "specVersion"],
    "additionalProperties": False,
    "properties": {
        "bomFormat": {"const": "CycloneDX"},
        "specVersion": {"const": "1.6"},
        "serialNumber": {
            "pattern": "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
        },
        "version": {"type": "integer", "minimum": 1},
        "metadata": {"additionalProperties": False, "properties": {"component": COMPONENT}},
        "components": {"type": "array", "items": COMPONENT, "uniqueItems": True},
    },
}


def make(output: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "tools/sbom.py", f"--output={output}", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_has_every_requirement_with_version_hashes_and_licence(tmp_path: Path) -> None:
    done = make(tmp_path / "sbom.json")
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "sbom.json").read_text())
    jsonschema.Draft7Validator(SCHEMA).validate(made)
    found = {part["name"]: part for part in made["components"]}
    locked = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", RUN, re.MULTILINE))
    assert {name: part["version"] for name, part in found.items()} == locked
    assert {part["purl"] for part in found.values()} == {
        f"pkg:pypi/{name}@{number}" for name, number in locked.items()
    }
    hashes = [entry["content"] for part in found.values() for entry in part["hashes"]]
    assert sorted(hashes) == sorted(re.findall("sha256:([0-9a-f]+)", RUN))
    assert found["anyio"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert f"anyio {locked['anyio']} MIT" in re.sub(" +", " ", done.stdout)


def test_a_package_may_have_several_licences(tmp_path: Path) -> None:
    locked = f"aiohttp=={version('aiohttp')} \\\n    --hash=sha256:{'0' * 64}\n"
    (tmp_path / "run.txt").write_text(locked)
    done = make(tmp_path / "sbom.json", f"--requirements={tmp_path / 'run.txt'}")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads((tmp_path / "sbom.json").read_text())["components"]
    assert found["licenses"] == [{"expression": "Apache-2.0 AND MIT"}]


def test_the_same_requirements_make_the_same_bytes(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        assert make(file).returncode == 0
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        (f"pyinstaller=={version('pyinstaller')}", "pyinstaller: 'GPLv2-or-later with"),
        ("anyio==0.0.1", "not 0.0.1: run `make clean setup`"),
        ("there-is-no-such-package==1", "there-is-no-such-package is not installed here"),
    ],
)
def test_it_fails_where_it_could_not_tell_the_truth(
    tmp_path: Path, requirement: str, said: str
) -> None:
    (tmp_path / "run.txt").write_text(f"# locked\n{requirement} \\\n    --hash=sha256:{'0' * 64}\n")
    done = make(tmp_path / "sbom.json", f"--requirements={tmp_path / 'run.txt'}")
    assert done.returncode == 1
    assert said in done.stderr
    assert not (tmp_path / "sbom.json").exists()
