"""The schema of scenarios says what the reader says, as far as a schema can."""

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from hami_mock.errors import UsageError
from hami_mock.faults.scenario_reader import parse
from hami_mock.faults.scenario_schema import scenario_schema
from hami_mock.node.fault_kinds import VERBS

EXAMPLES = Path(__file__).parents[3] / "examples"
VALIDATOR = jsonschema.Draft7Validator(scenario_schema())


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(scenario_schema())


@pytest.mark.parametrize(
    "path", sorted((EXAMPLES / "scenarios").glob("*.yaml")), ids=lambda path: path.name
)
def test_the_examples_are_valid(path: Path) -> None:
    assert list(VALIDATOR.iter_errors(yaml.safe_load(path.read_text()))) == []


def test_the_scenarios_in_the_docs_are_valid() -> None:
    text = (EXAMPLES / "README.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    documents = [yaml.safe_load(block) for block in blocks]
    scenarios = [each for each in documents if isinstance(each, dict) and "steps" in each]
    assert scenarios
    for document in scenarios:
        assert list(VALIDATOR.iter_errors(document)) == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_step(verb: str) -> None:
    needed = {"call": "allocate", "seconds": "2s"}
    taken = {p.name: needed[p.name] for p in VERBS[verb].parameters if p.is_required}
    assert VALIDATOR.is_valid({"steps": [{"at": "1s", verb: "all", **taken}]})


BOTH_SAY_NO = [
    "{}",
    "steps: []",
    "steps: [{}]",
    "steps: [{at: 1s}]",
    "steps: [{fail: all, lose: all}]",
    "steps: [{fail: all, xid: 0}]",
    "steps: [{fail: all, call: allocate}]",
    "steps: [{delay: all, call: allocate}]",
    "steps: [{delay: all, call: list, seconds: 1s}]",
    "steps: [{recover: all, for: 1m}]",
    "steps: [{clear: all, choose: 1}]",
    "steps: [{fail: all, choose: half}]",
    "steps: [{fail: []}]",
    "steps: [{loop: never, steps: [{drop: all}]}]",
    "steps: [{loop: 3}]",
    "steps: [{drop: all}]\nspeed: 2",
    "steps: [{drop: all}]\nseed: -1",
    "steps: [{drop: all}]\nrepeat: 0",
]


@pytest.mark.parametrize("text", BOTH_SAY_NO)
def test_what_the_schema_refuses_the_reader_refuses(text: str) -> None:
    assert not VALIDATOR.is_valid(yaml.safe_load(text))
    with pytest.raises(UsageError):
        parse(text, "x.yaml")
