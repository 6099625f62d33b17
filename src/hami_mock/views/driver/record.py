"""Fixed-size records: tables of fields that Python packs and C reads at the same offsets.

Little-endian, every number at a multiple of its size. Where that leaves a gap, the gap is a field
of its own, so that no compiler has a say in it.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

_CODES = {"gap": "x", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q"}
_ALIGNMENT = 8
"""Of records themselves: they may hold a u64, and stand in arrays."""


@dataclass(frozen=True)
class Field:
    """A number, an array of numbers, a text (`char`) or an array of records.

    A text has a length: so many bytes with its closing zero, in UTF-8.
    """

    name: str
    kind: Union[str, "Record"]
    about: str
    count: int = 1

    @property
    def is_text(self) -> bool:
        return self.kind == "char"

    @property
    def alignment(self) -> int:
        if isinstance(self.kind, Record):
            return _ALIGNMENT
        return 1 if self.is_text else struct.calcsize(_CODES[self.kind])

    @property
    def size(self) -> int:
        """Bytes of all elements."""
        if isinstance(self.kind, Record):
            return self.kind.size * self.count
        return self.alignment * self.count

    @property
    def code(self) -> str:
        """What `struct` calls it."""
        if isinstance(self.kind, Record) or self.is_text:
            return f"{self.size}s"
        return f"{self.count}{_CODES[self.kind]}"


class Placed(NamedTuple):
    """A field and where it begins in its record."""

    offset: int
    field: Field


class Record:
    """Fields one after the other."""

    def __init__(self, name: str, about: str, fields: Iterable[Field]) -> None:
        self.name = name
        self.about = about
        self.placed = tuple(_place(fields))
        last = self.placed[-1]
        self.size = last.offset + last.field.size
        self.fields = {each.field.name: each for each in self.placed if each.field.kind != "gap"}
        self._struct = struct.Struct("<" + "".join(each.field.code for each in self.placed))
        if self._struct.size != self.size:
            raise ValueError(f"{name}: {self._struct.size} bytes packed, {self.size} placed")

    def offset(self, name: str, index: int = 0) -> int:
        """Return where a field, or an element of it, begins."""
        offset, field = self.fields[name]
        return offset + field.size // field.count * index

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """Return the bytes; what isn't given is zero.

        A record within is given as a mapping, an array as a sequence that may be short, a text as a
        string that is cut to fit. Raises KeyError for a name that is no field's.
        """
        if unknown := values.keys() - self.fields.keys():
            raise KeyError(f"{self.name} has no {min(unknown)}")
        flat: list[Any] = []
        for _, field in self.fields.values():
            flat.extend(_packed(field, values.get(field.name)))
        return self._struct.pack(*flat)

    def unpack(self, data: bytes) -> dict[str, Any]:
        """Return what `pack` was given, with all fields."""
        flat = iter(self._struct.unpack(data))
        return {name: _unpacked(field, flat) for name, (_, field) in self.fields.items()}


def _place(fields: Iterable[Field]) -> Iterator[Placed]:
    """Yield fields at their offsets, and the gaps between them and after the last."""
    offset = 0
    for field in (*fields, None):
        alignment = field.alignment if field else _ALIGNMENT
        if gap := -offset % alignment:
            yield Placed(offset, Field(f"gap_{offset}", "gap", "", gap))
            offset += gap
        if field:
            yield Placed(offset, field)
            offset += field.size


def _packed(field: Field, value: Any) -> Sequence[Any]:
    if isinstance(field.kind, Record):
        each = [value] if isinstance(value, Mapping) else value or ()
        return (b"".join(map(field.kind.pack, _at_most(field, each))),)
    if field.is_text:
        text = (value or "").encode()[: field.count - 1]
        # A character that was cut in two is left out.
        return (text.decode(errors="ignore").encode(),)
    if field.count == 1:
        return (value or 0,)
    given = _at_most(field, value or ())
    return (*given, *(0,) * (field.count - len(given)))


def _at_most(field: Field, values: Sequence[Any]) -> Sequence[Any]:
    if len(values) > field.count:
        raise ValueError(f"{field.name} has {len(values)} elements, {field.count} at most")
    return values


def _unpacked(field: Field, flat: Iterator[Any]) -> Any:
    if isinstance(field.kind, Record):
        data, size = next(flat), field.kind.size
        found = [field.kind.unpack(data[i : i + size]) for i in range(0, len(data), size)]
        return found if field.count > 1 else found[0]
    if field.is_text:
        return next(flat).partition(b"\0")[0].decode(errors="replace")
    return next(flat) if field.count == 1 else tuple(next(flat) for _ in range(field.count))
