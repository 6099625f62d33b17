"""The options → a JSON Schema of the configuration file, for editors. Pure."""

from collections.abc import Iterable
from typing import Any

from hami_mock.settings import pools
from hami_mock.settings.options import IN_FILE, Option
from hami_mock.vendors import VENDORS

_GLOB = {"type": "string", "minLength": 1}
_MATCH = {
    "description": "globs that match the names of the nodes this section is for",
    "anyOf": [_GLOB, {"type": "array", "items": _GLOB, "minItems": 1}],
}


def config_schema() -> dict[str, Any]:
    """Return the schema. It knows flat keys (nvidia-cards) and mappings of them (nvidia: cards)."""
    # A file can't name another one.
    options = {name: _option(option) for name, option in IN_FILE.items() if name != "config"}
    prefixes = {name.partition("-")[0] for name in options if "-" in name}
    prefixes |= {vendor.prefix for vendor in VENDORS}
    mappings = {prefix: _mapping(f"{prefix}-", options) for prefix in sorted(prefixes)}
    definitions = {**mappings, **options} | {
        name: {"anyOf": [options[name], mappings[name]]} for name in options.keys() & mappings
    }
    keys = {name: _reference(name) for name in sorted(definitions)}
    section = _object({"match": _MATCH, **{k: v for k, v in keys.items() if k != "node-name"}})
    nodes = {
        "description": "options for some nodes only; the first section that matches applies",
        "type": "array",
        "items": {**section, "type": "object", "required": ["match"]},
    }
    own = {name: {"description": kind.allowed, **kind.schema} for name, kind in pools.KEYS.items()}
    pool = _object({**{k: v for k, v in keys.items() if k != "node-name"}, **own})
    fleet = {
        "description": "the nodes of a fleet (`hami-mock fleet`, `whatif`): so many of a kind each",
        "type": "array",
        "items": {**pool, "type": "object", "required": ["name", "nodes"]},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hami-mock configuration",
        **_object({**keys, "nodes": nodes, "pools": fleet}),
        "definitions": dict(sorted(definitions.items())),
    }


def _option(option: Option) -> dict[str, Any]:
    default = {"default": option.shown_default} if option.shown_default else {}
    return {"description": option.help, **default, **option.kind.schema}


def _mapping(prefix: str, names: Iterable[str]) -> dict[str, Any]:
    own = (name for name in names if name.startswith(prefix))
    return _object({name.removeprefix(prefix): _reference(name) for name in own})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/definitions/{name}"}
