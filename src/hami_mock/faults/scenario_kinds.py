"""The kinds of values in a scenario's file. Pure."""

from typing import TypeVar

from hami_mock.faults.actions import MOST_SECONDS, Share
from hami_mock.kit import durations
from hami_mock.kit.fields import Kind
from hami_mock.node.fault import Call

_T = TypeVar("_T")

SHORTEST = 0.01
"""From one turn to the next: what changes faster nobody sees, and it would stop all else."""

_MOST_IN_A_LIST = 100
_MOST_CHARACTERS = 200


def time(low: float) -> Kind[float]:
    """Return the kind of lengths of time that are at least so long."""

    def read(value: object) -> float:
        seconds = durations.parse(value)
        if not low <= seconds <= MOST_SECONDS:
            raise ValueError("too short or too long")
        return seconds

    least = f"at least {durations.show(low)} and " if low else ""
    return Kind(read, f"{durations.FORM}, {least}at most {durations.show(MOST_SECONDS)}")


def whole(low: int, high: int) -> Kind[int]:
    """Return the kind of whole numbers in a range."""

    def read(value: object) -> int:
        # YAML's `yes` and `on` are booleans, and for Python a boolean is a fine number.
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError("not in the range")
        return value

    return Kind(read, f"a whole number from {low} to {high}")


def or_forever(kind: Kind[_T]) -> Kind[_T | None]:
    """Return the kind that takes the word forever too, and reads it as None."""

    def read(value: object) -> _T | None:
        return None if value == "forever" else kind.read(value)

    return Kind(read, f"{kind.allowed}, or forever")


def _line(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("not a line of text")
    if not 0 < len(value) <= _MOST_CHARACTERS:
        raise ValueError("too short or too long")
    return value


def _list(value: object) -> list[object]:
    """Return a list, which may have been written as its only item."""
    items = value if isinstance(value, list) else [value]
    if not 0 < len(items) <= _MOST_IN_A_LIST:
        raise ValueError("nothing, or too much")
    return items


def _choose(value: object) -> int | Share:
    if isinstance(value, str) and value.endswith("%"):
        return Share(whole(1, 100).read(int(value[:-1])))
    return whole(1, 10_000).read(value)


LINE = Kind(_line, f"a line of text, at most {_MOST_CHARACTERS} characters")
SEED = whole(0, 2**31 - 1)
TURNS = whole(1, 1_000_000)
OFFSET = time(0)
SPAN = time(SHORTEST)
TARGETS = Kind(
    lambda value: tuple(_line(word) for word in _list(value)),
    "a card such as nvidia/0, a resource such as nvidia.com/gpu, a vendor, a glob of these, all, "
    "or a list",
)
XIDS = Kind(
    lambda value: tuple(whole(1, 99_999).read(xid) for xid in _list(value)),
    "a Xid such as 79, or a list of them",
)
CALL = Kind(lambda value: Call(str(value)), f"one of {', '.join(Call)}")
CHOOSE = Kind(_choose, "a number such as 2, or a share such as 50%")
