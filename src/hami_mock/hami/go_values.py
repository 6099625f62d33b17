"""Values the way Go reads them: HAMi is written in Go, and what it takes and refuses counts.

Into a struct, Go's JSON takes keys in any case, null and absent for the zero value, and 1.0 for no
whole number. Python differs in all three. All of these raise Malformed for what Go refuses.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from hami_mock.hami.errors import Malformed
from hami_mock.kit.text import cut

_T = TypeVar("_T")

INT32 = range(-(2**31), 2**31)
UINT32 = range(2**32)
INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)

_WHOLE = re.compile(r"[+-]?[0-9]+")
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_TYPES = {str: "a string", bool: "true or false", dict: "an object", list: "a list"}
_LONGEST_SHOWN = 80

LONGEST = 2**18
"""What Kubernetes takes for all annotations of an object together; one has no more characters."""
MOST = 4096
"""No node has so many devices, no pod so many containers, and no card so many profiles."""


def bounded(text: str) -> str:
    """Return an annotation's value, unless it is too large to be read, or no Unicode."""
    if len(text) > LONGEST:
        raise Malformed(f"the value has {len(text)} characters; at most {LONGEST} are allowed")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Malformed(f"the value is not valid Unicode: {error}") from error
    return text


def whole(text: str, place: str, among: range) -> int:
    # The length, because Python refuses to convert thousands of digits, with another error.
    if len(text) <= 40 and _WHOLE.fullmatch(text) and (number := int(text)) in among:
        return number
    raise refusal(place, text, _numbers(among))


def boolean(text: str, place: str) -> bool:
    if text not in _BOOLEANS:
        raise refusal(place, text, "true or false")
    return _BOOLEANS[text]


def json_value(text: str) -> Any:
    try:
        found = json.loads(bounded(text), parse_constant=_no_constant)
        if "\\u" in text:
            # Half of a surrogate pair is escaped in there, but can't be written again: refuse it.
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not valid JSON: {error}") from error


def json_list(text: str) -> list[Any]:
    return _typed(json_value(text), list, "the value")


def refusal(place: str, value: object, expected: str) -> Malformed:
    """Return the error that says what is wrong with a value, shortened if it is long."""
    try:
        shown = repr(value)
    except RecursionError:
        shown = "(nested too deeply to show)"
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}..."
    return Malformed(f"{place}: {shown} must be {expected}")


class Fields:
    """The fields of a JSON object that Go would read into a struct."""

    def __init__(self, value: object, place: str) -> None:
        self.place = place
        self.given: dict[str, Any] = _typed(value, dict, place)
        """The object as it is."""
        given = self.given.items()
        self.values = {key.casefold(): field for key, field in given if field is not None}

    @overload
    def get(self, name: str, kind: type[_T]) -> _T: ...
    @overload
    def get(self, name: str, kind: range) -> int: ...
    def get(self, name: str, kind: Any) -> Any:
        """Return a str, bool, dict, list, or a whole number in a range; absent is empty or 0."""
        return _read(self.values.get(name.casefold()), kind, f"{self.place}: {cut(name, 80)}")


@dataclass(frozen=True)
class Struct(Generic[_T]):
    """A struct of HAMi's as a table: our attribute, its key in JSON, and what Go takes there.

    That is one of the kinds of `Fields.get`, a struct, or [one of these] for a list of them.
    """

    make: Callable[..., _T]
    fields: tuple[tuple[str, str, Any], ...]

    def read(self, value: object, place: str) -> _T:
        fields = Fields(value, place)
        # HAMi gives the keys of some structs capitals, and reads them without too.
        small = ((name, key[0].lower() + key[1:], kind) for name, key, kind in self.fields)
        return self.make(**{name: fields.get(key, kind) for name, key, kind in small})

    def write(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON object for values by attribute; what there is none of is left out."""
        return {
            key: _write(values[name], kind) for name, key, kind in self.fields if name in values
        }


def _read(value: object, kind: Any, place: str) -> Any:
    if isinstance(kind, Struct):
        return kind.read(value, place)
    if isinstance(kind, list):
        elements = enumerate(_typed(value, list, place))
        return tuple(_read(each, kind[0], f"{place}[{i}]") for i, each in elements)
    if isinstance(kind, range):
        if value is not None and (type(value) is not int or value not in kind):
            raise refusal(place, value, _numbers(kind))
        return value or 0
    return _typed(value, kind, place)


def _write(value: Any, kind: Any) -> Any:
    if isinstance(kind, list):
        return [_write(each, kind[0]) for each in value]
    return kind.write(vars(value)) if isinstance(kind, Struct) else value


def _typed(value: object, kind: type[_T], place: str) -> _T:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise refusal(place, value, _TYPES[kind])
    if isinstance(value, dict | list) and len(value) > MOST:
        raise Malformed(f"{place}: there are {len(value)} elements; at most {MOST} are allowed")
    return value


def _numbers(among: range) -> str:
    return f"a whole number from {among.start} to {among.stop - 1}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
