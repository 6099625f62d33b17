"""The verbs and a scenario's keys → a JSON Schema of the scenario file, for editors. Pure."""

from collections.abc import Mapping
from typing import Any

from hami_mock.faults import scenario_kinds as kinds
from hami_mock.kit.values import Kind, Schema
from hami_mock.node.fault import FaultKind, On, Verb
from hami_mock.node.fault_kinds import VERBS


def scenario_schema() -> dict[str, Any]:
    """Return the schema. It can't say what steps come to: that a loop in another must end, say."""
    steps = {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/step"}}
    loop = _object({**_keys(kinds.LOOP_KEYS), "steps": steps}, "loop", "steps")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hami-mock scenario",
        **_object({**_keys(kinds.TOP_KEYS), "steps": steps}, "steps"),
        "definitions": {
            "step": {
                "anyOf": [{"$ref": f"#/definitions/{name}"} for name in (*VERBS, "loop")],
            },
            **{name: _step(verb) for name, verb in VERBS.items()},
            "loop": loop,
        },
    }


def _step(verb: Verb) -> dict[str, Any]:
    left_out = set() if isinstance(verb, FaultKind) else {"for"}
    left_out |= {"choose"} if verb.on is On.BOTH else set()
    parameters = {
        parameter.name: {
            "description": parameter.help,
            **(kinds.one_or_more(parameter.kind) if parameter.is_drawn else parameter.kind).schema,
        }
        for parameter in verb.parameters
    }
    own = {verb.verb: {"description": verb.help, **kinds.TARGETS.schema}}
    rhythm = {key: kind for key, kind in kinds.STEP_KEYS.items() if key not in left_out}
    required = [parameter.name for parameter in verb.parameters if parameter.is_required]
    return _object({**own, **parameters, **_keys(rhythm)}, verb.verb, *required)


def _keys(known: Mapping[str, Kind[Any]]) -> dict[str, Schema]:
    return {key: {"description": kind.allowed, **kind.schema} for key, kind in known.items()}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
