"""`hami-mock schema`: JSON Schemas of our files, for editors that complete and check them."""

import json

from hami_mock.cli.output import say
from hami_mock.cli.parser import Parser
from hami_mock.faults.scenario_schema import scenario_schema
from hami_mock.settings.schema import config_schema

SCHEMAS = {"config": config_schema, "scenario": scenario_schema}


def parser() -> Parser:
    """Return the parser of the command."""
    parser = Parser(
        "schema",
        usage=f"{'|'.join(SCHEMAS)}",
        examples=("schema config", "hami-mock schema scenario > scenario.schema.json"),
    )
    parser.add_argument("file", choices=SCHEMAS, help="the kind of file")
    return parser


def main(arguments: list[str]) -> int:
    """Print a schema."""
    say(schema_text(parser().parse(arguments).file))
    return 0


def schema_text(name: str) -> str:
    """Return one of the schemas as JSON."""
    return json.dumps(SCHEMAS[name](), indent=1)
