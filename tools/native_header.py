"""Write native/layout.h from the tables of views/driver, or --check that it is up to date."""

import sys
from collections.abc import Iterator
from pathlib import Path

from hami_mock.views.driver import layout, messages
from hami_mock.views.driver.record import Field, Record

TARGET = Path("native/layout.h")
_TYPES = {
    "gap": "uint8_t", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "i32": "int32_t", "i64": "int64_t", "char": "char",
}  # fmt: skip
_HEAD = """\
/* Written by `make proto` from src/hami_mock/views/driver/layout.py and messages.py. */
#ifndef HAMI_MOCK_LAYOUT_H
#define HAMI_MOCK_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
"""


def constants() -> Iterator[str]:
    """Yield a line for each constant of the two modules."""
    found: dict[str, int | str] = {}
    for module in (layout, messages):
        own = {name: each for name, each in vars(module).items() if name.isupper()}
        found |= {name: each for name, each in own.items() if isinstance(each, int | str)}
        for table in own.values():
            if isinstance(table, dict):
                found |= table
    for name, value in found.items():
        yield f"#define {name} {literal(value)}"


def literal(value: int | str) -> str:
    """Return a constant as C writes it."""
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value}u" if value < 1 << 16 else f"{value:#x}{'ull' if value >> 32 else 'u'}"


def declaration(field: Field) -> str:
    kind = f"struct {field.kind.name}" if isinstance(field.kind, Record) else _TYPES[field.kind]
    array = f"[{field.count}]" if field.count > 1 else ""
    about = f" /* {field.about} */" if field.about else ""
    return f"    {kind} {field.name}{array};{about}"


def record(each: Record) -> Iterator[str]:
    """Yield the lines of a record, and what a compiler must find of it."""
    yield f"/* {each.about} */"
    yield f"struct {each.name} {{"
    yield from (declaration(placed.field) for placed in each.placed)
    yield "};"
    yield f'_Static_assert(sizeof(struct {each.name}) == {each.size}, "{each.name}");'
    for offset, field in each.placed:
        where = f"offsetof(struct {each.name}, {field.name})"
        yield f'_Static_assert({where} == {offset}, "{each.name}.{field.name}");'


def header() -> str:
    """Return native/layout.h."""
    parts = [_HEAD, *constants()]
    for each in (*layout.RECORDS, messages.REQUEST, messages.REPLY):
        parts += ["", *record(each)]
    return "\n".join([*parts, "", "#endif"]) + "\n"


def main() -> None:
    """Compare or write."""
    text = header()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        sys.exit(f"{TARGET} is not what views/driver says: run `make proto`")


main()
