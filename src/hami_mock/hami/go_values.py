"""Values the way Go reads them: HAMi is written in Go, and what it takes and refuses counts.

Into a struct, Go's JSON takes keys in any case, null and absent for the zero value, and 1.0 for no
whole number. Python differs in all three.
"""

import json
import re
from typing import Any

from hami_mock.hami.errors import Malformed

INT32 = range(-(2**31), 2**31)
UINT32 = range(2**32)
INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)

_WHOLE = re.compile(r"[+-]?[0-9]+")
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_LONGEST_SHOWN = 80


def whole(text: str, place: str, among: range) -> int:
    """Return the number that a text is. Raises Malformed."""
    # The length, because Python refuses to convert thousands of digits, with another error.
    if len(text) <= 40 and _WHOLE.fullmatch(text) and (number := int(text)) in among:
        return number
    raise refusal(place, text, _numbers(among))


def boolean(text: str, place: str) -> bool:
    """Return whether a text says true. Raises Malformed."""
    if text not in _BOOLEANS:
        raise refusal(place, text, "true or false")
    return _BOOLEANS[text]


def json_value(text: str) -> Any:
    """Return what JSON says. Raises Malformed."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not valid JSON: {error}") from error


def json_list(text: str) -> list[Any]:
    """Return the elements of a JSON list. Raises Malformed."""
    document = json_value(text)
    if document is None:
        return []
    if not isinstance(document, list):
        raise refusal("the value", document, "a list")
    return document


def refusal(place: str, value: object, expected: str) -> Malformed:
    """Return the error that says what is wrong with a value, shortened if it is long."""
    shown = repr(value)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}..."
    return Malformed(f"{place}: {shown} must be {expected}")


class Fields:
    """The fields of a JSON object that Go would read into a struct. All raise Malformed."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict | None):
            raise refusal(place, value, "an object")
        self.place = place
        self.given: dict[str, Any] = value or {}
        """The object as it is."""
        given = self.given.items()
        self._values = {str(key).casefold(): field for key, field in given if field is not None}

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self._values

    def text(self, name: str) -> str:
        """Return a string; absent is empty."""
        value = self._get(name, "")
        if not isinstance(value, str):
            raise self._refusal(name, value, "a string")
        return value

    def whole(self, name: str, among: range) -> int:
        """Return a whole number; absent is 0."""
        value = self._get(name, 0)
        if type(value) is not int or value not in among:
            raise self._refusal(name, value, _numbers(among))
        return value

    def boolean(self, name: str) -> bool:
        """Return a truth value; absent is false."""
        value = self._get(name, False)
        if not isinstance(value, bool):
            raise self._refusal(name, value, "true or false")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object as it is; absent is empty."""
        value = self._get(name, {})
        if not isinstance(value, dict):
            raise self._refusal(name, value, "an object")
        return value

    def elements(self, name: str) -> list[tuple[Any, str]]:
        """Return the elements of a list, each with its place; absent is empty."""
        value = self._get(name, [])
        if not isinstance(value, list):
            raise self._refusal(name, value, "a list")
        return [(element, f"{self.place}: {name}[{i}]") for i, element in enumerate(value)]

    def anything(self, name: str) -> Any:
        """Return a value of whatever type; absent is None."""
        return self._get(name, None)

    def _get(self, name: str, absent: object) -> Any:
        return self._values.get(name.casefold(), absent)

    def _refusal(self, name: str, value: object, expected: str) -> Malformed:
        return refusal(f"{self.place}: {name}", value, expected)


def _numbers(among: range) -> str:
    return f"a whole number from {among.start} to {among.stop - 1}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
