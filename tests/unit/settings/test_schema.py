"""The schema says what `load` says, as far as a schema can."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hami_mock.settings.options import BY_NAME, GROUP_OPTIONS
from hami_mock.settings.schema import config_schema

ROOT = Path(__file__).parents[3]
VALIDATOR = jsonschema.Draft7Validator(config_schema())
FLEETS = sorted(
    path
    for folder in ("overlays", "components", "examples", "charts")
    for path in (ROOT / folder).rglob("*.yaml")
    if path.name in ("fleet.yaml", "config.yaml")
)


def is_valid(text: str) -> bool:
    return VALIDATOR.is_valid(yaml.safe_load(text))


def test_it_is_a_schema_and_the_same_each_time() -> None:
    jsonschema.Draft7Validator.check_schema(config_schema())
    assert json.dumps(config_schema()) == json.dumps(config_schema())


def test_it_knows_every_key() -> None:
    keys = config_schema()["properties"].keys()
    assert keys >= (BY_NAME.keys() | GROUP_OPTIONS.keys()) - {"config"}
    assert "config" not in keys


@pytest.mark.parametrize("option", [o for o in BY_NAME.values() if o.default is not None])
def test_every_default_is_valid(option: Any) -> None:
    if option.name != "config":
        assert is_valid(f"{option.name}: {json.dumps(_plain(option.default))}")


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


@pytest.mark.parametrize("path", FLEETS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_are_valid(path: Path) -> None:
    assert list(VALIDATOR.iter_errors(yaml.safe_load(path.read_text()))) == []


def test_there_are_examples() -> None:
    assert FLEETS


@pytest.mark.parametrize("page", ["README.md", "docs/flags.md", "docs/hami.md", "docs/faults.md"])
def test_the_configuration_in_the_docs_is_valid(page: str) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    for block in blocks:
        for document in yaml.safe_load_all(block):
            if not {"apiVersion", "kind", "steps"} & document.keys():
                assert list(VALIDATOR.iter_errors(document)) == []


VALID = [
    "",
    "nvidia: {cards: 2, model: T4}",
    "nvidia:",
    "nvidia-groups: [{cards: 4, model: T4, numa: [0, 0, 1, 1], nvlink: [[0, 1], [2, 3]]}, {}]",
    "nodes: [{match: a-*, nvidia-cards: 0}, {match: [b, c], nvidia: {groups: []}}]",
    "vendors: [nvidia, mlu]",
    "vendors: nvidia,mlu",
    "hami: on",
    "hami: {keep-annotations: true}",
    "log: {level: debug}",
    "ignored-xids: [13, 31]",
    "nvidia-memory-factor: auto",
    "metax-gpu: {cards: 1}",
    "mlu-resource-memory-name: a/b",
]
INVALID = [
    "[a]",
    "nvidia-cards: 129",
    "nvidia: {cards: many}",
    "nvidia-crads: 1",
    "nvidia: {crads: 1}",
    "config: x",
    "nodes: [{nvidia-cards: 1}]",
    "nodes: [{match: a, node-name: b}]",
    "nodes: {a: b}",
    "vendors: [nvidea]",
    "nvidia-groups: [{card: 1}]",
    "nvidia-groups: [{numa: 64}]",
    "log-level: loud",
    "http-listen: nonsense",
]


@pytest.mark.parametrize("text", VALID)
def test_what_is_valid(text: str) -> None:
    assert is_valid(text)


@pytest.mark.parametrize("text", INVALID)
def test_what_is_not_valid(text: str) -> None:
    assert not is_valid(text)
