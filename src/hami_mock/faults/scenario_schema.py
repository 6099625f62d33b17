"""The keys of a scenario's file, what each may be, and a JSON Schema of them for editors. Pure."""

from collections.abc import Mapping
from typing import Any, TypeVar

from hami_mock.faults.actions import Share
from hami_mock.kit.values import LINE, SEED, SPAN, Kind, Schema, time, whole
from hami_mock.node.fault import FaultKind, On, Parameter, Verb
from hami_mock.node.fault_kinds import VERBS

_T = TypeVar("_T")

_MOST_IN_A_LIST = 100
_COUNT = whole(1, 10_000)


def one_or_more(kind: Kind[_T], allowed: str = "") -> Kind[tuple[_T, ...]]:
    """Return the kind of lists, which may be written as their only item."""

    def read(value: object) -> tuple[_T, ...]:
        items = value if isinstance(value, list) else [value]
        if not 0 < len(items) <= _MOST_IN_A_LIST:
            raise ValueError("nothing, or too much")
        return tuple(map(kind.read, items))

    several = {"type": "array", "items": kind.schema, "minItems": 1, "maxItems": _MOST_IN_A_LIST}
    schema = {"anyOf": [kind.schema, several]}
    return Kind(read, allowed or f"{kind.allowed}, or a list of these", schema)


def of(parameter: Parameter) -> Kind[Any]:
    """Return the kind of a parameter in a step: of what is drawn, it may list several."""
    return one_or_more(parameter.kind) if parameter.is_drawn else parameter.kind


def _choose(value: object) -> int | Share:
    if isinstance(value, str) and value.endswith("%"):
        return Share(whole(1, 100).read(int(value[:-1])))
    return _COUNT.read(value)


TURNS = whole(1, 1_000_000)
TURNS_OR_FOREVER = TURNS.or_word("forever", None)
LENGTH = SPAN.or_word("forever", None)
OFFSET = time(0)
TARGETS = one_or_more(
    LINE,
    "a card such as nvidia/0, a resource such as nvidia.com/gpu, a vendor, a glob of these, all, "
    "or a list",
)
CHOOSE = Kind(
    _choose,
    "a number such as 2, or a share such as 50%",
    {"anyOf": [_COUNT.schema, {"type": "string", "pattern": "^[0-9]{1,3}%$"}]},
)

_WHEN = {"at": OFFSET, "jitter": OFFSET, "every": SPAN}
TOP_KEYS: Mapping[str, Kind[Any]] = {
    "name": LINE,
    "seed": SEED,
    "repeat": TURNS_OR_FOREVER,
    "length": LENGTH,
}
LOOP_KEYS: Mapping[str, Kind[Any]] = {"loop": TURNS_OR_FOREVER, **_WHEN}
STEP_KEYS: Mapping[str, Kind[Any]] = {
    **_WHEN,
    "times": TURNS,
    "until": SPAN,
    "for": SPAN,
    "choose": CHOOSE,
}
"""What a scenario, a loop and a step can say besides their steps and what to do."""


def scenario_schema() -> dict[str, Any]:
    """Return the schema. It can't say what steps come to: that a loop in another must end, say."""
    steps = {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/step"}}
    loop = _object({**_keys(LOOP_KEYS), "steps": steps}, "loop", "steps")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hami-mock scenario",
        **_object({**_keys(TOP_KEYS), "steps": steps}, "steps"),
        "definitions": {
            "step": {"anyOf": [{"$ref": f"#/definitions/{name}"} for name in (*VERBS, "loop")]},
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
            **of(parameter).schema,
        }
        for parameter in verb.parameters
    }
    own = {verb.verb: {"description": verb.help, **TARGETS.schema}}
    rhythm = {key: kind for key, kind in STEP_KEYS.items() if key not in left_out}
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
