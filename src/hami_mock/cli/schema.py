"""`hami-mock schema`: JSON Schemas of our files, for editors that complete and check them."""

import json

from hami_mock.cli.output import say
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.faults.scenario_schema import scenario_schema
from hami_mock.settings.schema import config_schema

SCHEMAS = {"config": config_schema, "scenario": scenario_schema}


def parser() -> Parser:
    return Parser(
        "schema",
        usage="|".join(SCHEMAS),
        examples=("schema config", "hami-mock schema scenario > scenario.schema.json"),
    ).add("file", "the kind of file", choices=SCHEMAS, metavar="|".join(SCHEMAS))


def run(parsed: Parsed) -> None:
    say(schema_text(parsed.file))


def schema_text(name: str) -> str:
    return json.dumps(SCHEMAS[name](), indent=1)
