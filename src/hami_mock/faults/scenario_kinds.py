"""The kinds of values that only a scenario's file has. Pure."""

from typing import TypeVar

from hami_mock.faults.actions import Share
from hami_mock.kit.values import LINE, Kind, time, whole

_T = TypeVar("_T")

_MOST_IN_A_LIST = 100


def or_forever(kind: Kind[_T]) -> Kind[_T | None]:
    """Return the kind that takes the word forever too, and reads it as None."""

    def read(value: object) -> _T | None:
        return None if value == "forever" else kind.read(value)

    return Kind(read, f"{kind.allowed}, or forever")


def one_or_more(kind: Kind[_T], allowed: str = "") -> Kind[tuple[_T, ...]]:
    """Return the kind of lists, which may be written as their only item."""

    def read(value: object) -> tuple[_T, ...]:
        items = value if isinstance(value, list) else [value]
        if not 0 < len(items) <= _MOST_IN_A_LIST:
            raise ValueError("nothing, or too much")
        return tuple(map(kind.read, items))

    return Kind(read, allowed or f"{kind.allowed}, or a list of these")


def _choose(value: object) -> int | Share:
    if isinstance(value, str) and value.endswith("%"):
        return Share(whole(1, 100).read(int(value[:-1])))
    return whole(1, 10_000).read(value)


SEED = whole(0, 2**31 - 1)
TURNS = whole(1, 1_000_000)
OFFSET = time(0)
TARGETS = one_or_more(
    LINE,
    "a card such as nvidia/0, a resource such as nvidia.com/gpu, a vendor, a glob of these, all, "
    "or a list",
)
CHOOSE = Kind(_choose, "a number such as 2, or a share such as 50%")
