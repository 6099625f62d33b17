"""A mapping of a configuration file, read with types; what is wrong is collected on the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# HAMi counts with 32 bits.
_MOST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Section:
    """A mapping and its place in the file. A key that is absent or null has its default."""

    values: Mapping[Any, Any]
    place: str
    problems: list[str]

    def text(self, key: str, *, needed: bool = False) -> str:
        """Return a text; a whole number is one too, as it is for HAMi (chipName: 910)."""
        value = self.values.get(key)
        if type(value) is int:
            return str(value)
        if isinstance(value, str) and (value or not needed):
            return value
        if value is not None or needed:
            self.refuse(key, value, "a text that isn't empty" if needed else "a text")
        return ""

    def whole(self, key: str, default: int = 0, *, least: int = 0) -> int:
        """Return a whole number; Helm writes large ones as 1e+06."""
        value = self.values.get(key)
        if value is None:
            return default
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        if type(number) is int and least <= number <= _MOST:
            return number
        self.refuse(key, value, f"a whole number from {least} to {_MOST}")
        return default

    def scaling(self, key: str, default: float) -> float:
        """Return a number that something is multiplied with."""
        value = self.values.get(key)
        if value is None:
            return default
        if type(value) in (int, float) and 0 <= value <= _MOST:
            return float(value)
        self.refuse(key, value, f"a number from 0 to {_MOST}")
        return default

    def flag(self, key: str) -> bool:
        """Return a truth value."""
        value = self.values.get(key)
        if not isinstance(value, bool | None):
            self.refuse(key, value, "true or false")
        return value is True

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the texts of a list."""
        row = self._row(key)
        return tuple(row.text(place, needed=True) for place in row.values)

    def wholes(self, key: str) -> tuple[int, ...]:
        """Return the whole numbers of a list."""
        row = self._row(key)
        return tuple(row.whole(place) for place in row.values)

    def section(self, key: str) -> "Section":
        """Return a mapping in this one."""
        value = self.values.get(key)
        if not isinstance(value, dict | None):
            self.refuse(key, value, "a mapping")
            value = None
        return Section(value or {}, self._path(key), self.problems)

    def sections(self, key: str) -> list["Section"]:
        """Return the mappings of a list."""
        row = self._row(key)
        for place, element in row.values.items():
            if not isinstance(element, dict):
                row.refuse(place, element, "a mapping")
        return [row.section(place) for place, it in row.values.items() if isinstance(it, dict)]

    def tables(self, key: str) -> list[list["Section"]]:
        """Return the mappings of each list of a list."""
        row = self._row(key)
        return [row.sections(place) for place in row.values]

    def refuse(self, key: str, value: object, expected: str) -> None:
        """Note what is wrong with a value."""
        self.problems.append(
            f"{self._path(key)}: {value!r} is not allowed: it must be {expected}"
            if value is not None
            else f"{self._path(key)}: is missing: it must be {expected}"
        )

    def _row(self, key: str) -> "Section":
        """Return a list as a section whose keys are places: models[0], models[1]."""
        value = self.values.get(key)
        if not isinstance(value, list | None):
            self.refuse(key, value, "a list")
            value = None
        places = {f"{key}[{i}]": element for i, element in enumerate(value or ())}
        return Section(places, self.place, self.problems)

    def _path(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key
