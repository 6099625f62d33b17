"""The selectors that people write most, in CEL; of others it is said that nobody knows. Pure."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping

from hami_mock.doctor.dra_objects import Device
from hami_mock.kit.quantities import quantity

_LONGEST = 10_000
"""The API server takes no longer expression."""
_TEXT = r"""'([^'\\]*)'|"([^"\\]*)\""""
_VALUE = rf"(?:{_TEXT}|(-?\d{{1,18}})|(true|false))"
_WORD = re.compile(r"""'[^'\\]*'|"[^"\\]*"|&&|\|\||[^'"&|()?]+|.""", re.DOTALL)
_DRIVER = re.compile(rf"device\.driver\s*(==|!=)\s*(?:{_TEXT})")
_OF = rf"\[\s*(?:{_TEXT})\s*\]\.([A-Za-z_][A-Za-z0-9_-]*)"
_ATTRIBUTE = re.compile(rf"device\.attributes{_OF}(?:\s*(==|!=)\s*{_VALUE})?")
_CAPACITY = re.compile(
    rf"device\.capacity{_OF}\.compareTo\(\s*quantity\(\s*(?:{_TEXT})\s*\)\s*\)\s*"
    r"(==|!=|>=|<=|>|<)\s*0"
)
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge,
    "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


def matches(expressions: Iterable[str], device: Device) -> bool | None:
    """Tell whether a device is what all of the expressions want; None: that can't be told."""
    is_sure = True
    for expression in expressions:
        for term in _terms(expression):
            match _matches(term, device):
                case False:
                    return False
                case None:
                    is_sure = False
    return True if is_sure else None


def can_be_read(expression: str) -> bool:
    """Tell whether all of an expression is understood, whatever the device is."""
    patterns = (_DRIVER, _ATTRIBUTE, _CAPACITY)
    return all(any(each.fullmatch(term) for each in patterns) for term in _terms(expression))


def _terms(expression: str) -> list[str]:
    """Return what is joined with && and nothing else; else the whole, which isn't understood."""
    terms, depth = [""], 0
    for word in _WORD.findall(expression[: _LONGEST + 1]):
        depth += (word == "(") - (word == ")")
        if word in ("||", "?") and depth == 0:
            return [expression]
        if word == "&&" and depth == 0:
            terms.append("")
        else:
            terms[-1] += word
    return [term.strip() for term in terms] if len(expression) <= _LONGEST else [expression]


def _matches(term: str, device: Device) -> bool | None:
    if found := _DRIVER.fullmatch(term):
        sign, one, other = found.groups()
        return (device.driver == (one or other or "")) == (sign == "==")
    if found := _ATTRIBUTE.fullmatch(term):
        domain, other, name, sign, *values = found.groups()
        has = device.attribute(domain or other or "", name)
        # Without the attribute the scheduler has an error here, and doesn't take the device.
        is_wanted = has is True if sign is None else _is_value(has, *values) == (sign == "==")
        return has is not None and is_wanted
    if found := _CAPACITY.fullmatch(term):
        return _is_enough(device, found)
    return None


def _is_enough(device: Device, found: re.Match[str]) -> bool | None:
    domain, other, name, one, another, sign = found.groups()
    own = device.capacity.get(f"{domain or other}/{name}")
    if own is None and (domain or other) == device.driver:
        own = device.capacity.get(name)
    wanted = quantity(one or another)
    if wanted is None:
        return None
    return own is not None and _COMPARISONS[sign](own.value, wanted)


def _is_value(
    has: object, one: str | None, other: str | None, number: str | None, truth: str | None
) -> bool:
    if number is not None:
        return not isinstance(has, bool) and has == int(number)
    if truth is not None:
        return has is (truth == "true")
    return has == (one if one is not None else other)
