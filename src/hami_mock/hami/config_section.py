"""A mapping of HAMi's configuration files, read with the types that HAMi has for it. Pure."""

from dataclasses import dataclass

from hami_mock.kit.values import Fields, Kind, whole

# HAMi counts with 32 bits.
_MOST = 2**31 - 1


def _text(value: object) -> str:
    """Return a text; a whole number is one too, as it is for HAMi (chipName: 910)."""
    if type(value) is int or isinstance(value, str):
        return str(value)
    raise ValueError("not a text")


def _filled(value: object) -> str:
    if text := _text(value):
        return text
    raise ValueError("empty")


def _scaling(value: object) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _MOST:  # type: ignore[operator]
        raise ValueError("not in the range")
    return float(value)  # type: ignore[arg-type]


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("no boolean")


_TEXT = Kind(_text, "a text")
_FILLED = Kind(_filled, "text that isn't empty")
_SCALING = Kind(_scaling, f"a number from 0 to {_MOST}")
_FLAG = Kind(_flag, "true or false")


def _whole(least: int) -> Kind[int]:
    number = whole(least, _MOST)

    def read(value: object) -> int:
        # Helm writes large ones as 1e+06.
        return number.read(int(value) if isinstance(value, float) and value.is_integer() else value)

    return Kind(read, number.allowed)


@dataclass(frozen=True)
class Section(Fields):
    """A mapping and its place in the file. A key that is absent or null has its default."""

    is_null_absent: bool = True

    def text(self, key: str, *, needed: bool = False) -> str:
        return self.need(key, _FILLED, "") if needed else self.get(key, _TEXT, "")

    def whole(self, key: str, default: int = 0, *, least: int = 0) -> int:
        return self.get(key, _whole(least), default)

    def scaling(self, key: str) -> float:
        return self.get(key, _SCALING, 0.0)

    def flag(self, key: str) -> bool:
        return self.get(key, _FLAG, False)

    def check_texts(self, key: str) -> None:
        row = self.row(key)
        for place in row.values:
            row.text(place, needed=True)
