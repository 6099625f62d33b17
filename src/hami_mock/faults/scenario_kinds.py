"""The kinds of values that only a scenario's file has. Pure."""

from collections.abc import Mapping
from typing import Any, TypeVar

from hami_mock.faults.actions import Share
from hami_mock.kit.values import LINE, SEED, SPAN, Kind, time, whole

_T = TypeVar("_T")

_MOST_IN_A_LIST = 100


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


_COUNT = whole(1, 10_000)


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
