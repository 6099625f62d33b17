"""The options → a JSON Schema of the configuration file, for editors. Pure."""

from collections.abc import Iterable
from typing import Any

from hami_mock.settings.kinds import GROUPS
from hami_mock.settings.options import BY_NAME, GROUP_OPTIONS
from hami_mock.vendors import VENDORS

_GLOB = {"type": "string", "minLength": 1}
_SECTION_KEYS = {
    "match": {
        "description": "globs that match the names of the nodes this section is for",
        "anyOf": [_GLOB, {"type": "array", "items": _GLOB, "minItems": 1}],
    }
}


def config_schema() -> dict[str, Any]:
    """Return the schema. It knows flat keys (nvidia-cards) and mappings of them (nvidia: cards)."""
    options = _options()
    mappings = {name: _mapping(name, options) for name in sorted(_prefixes(options))}
    definitions = {**mappings, **options} | {
        name: {"anyOf": [options[name], mappings[name]]} for name in options.keys() & mappings
    }
    keys = {name: _reference(name) for name in sorted(definitions)}
    section = _object({**_SECTION_KEYS, **{k: v for k, v in keys.items() if k != "node-name"}})
    nodes = {
        "description": "options for some nodes only; the first section that matches applies",
        "type": "array",
        "items": {**section, "type": "object", "required": ["match"]},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hami-mock configuration",
        **_object({**keys, "nodes": nodes}),
        "definitions": dict(sorted(definitions.items())),
    }


def _options() -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    for name, option in BY_NAME.items():
        default = {"default": option.shown_default} if option.shown_default else {}
        schemas[name] = {"description": option.help, **default, **option.kind.schema}
    for name, vendor in GROUP_OPTIONS.items():
        text = f"{vendor.title} cards of different models, instead of cards, model and memory"
        schemas[name] = {"description": text, **GROUPS.schema}
    # A file can't name another one.
    del schemas["config"]
    return schemas


def _prefixes(names: Iterable[str]) -> set[str]:
    first_words = {name.partition("-")[0] for name in names if "-" in name}
    return first_words | {vendor.prefix for vendor in VENDORS}


def _mapping(prefix: str, names: Iterable[str]) -> dict[str, Any]:
    own = (name for name in names if name.startswith(f"{prefix}-"))
    return _object({name.removeprefix(f"{prefix}-"): _reference(name) for name in own})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/definitions/{name}"}
