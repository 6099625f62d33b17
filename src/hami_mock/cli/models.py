"""`hami-mock models`: the catalog of cards."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Any

from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.errors import UsageError
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.terminal import table, width
from hami_mock.vendors import VENDORS, catalog

_COLUMNS = ("vendor", "name", "product", "memory", "cores", "family", "compute", "power")
_TITLES = {"name": "MODEL", "memory": "MEMORY MiB", "power": "POWER W"}
_NUMBERS = {"memory", "cores", "compute", "power"}
_WIDE = 124
"""Columns that the whole catalog takes."""


def parser() -> Parser:
    parser = Parser(
        "models",
        usage="[WORD …] [FLAGS]",
        examples=("models", "models nvidia", "models nvidia '*80gb*'", "models hopper -o json"),
    )
    text = "show only models with this vendor, family, name or part of a name; may be a glob"
    return parser.add("words", text, nargs="*", metavar="WORD").add_output()


def run(parsed: Parsed) -> None:
    rows = model_rows(parsed.words)
    show(rows, parsed.output, models_table(rows))


def model_rows(words: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return one row for each model that all words are true of. Raises UsageError for none."""
    rows = [
        {"vendor": vendor.prefix, "maker": vendor.maker, **asdict(model)}
        for vendor in VENDORS
        for model in catalog.models()[vendor.maker].values()
    ]
    found = [row for row in rows if all(_is_about(row, word.lower()) for word in words)]
    if not found:
        known = {str(row[key]) for row in rows for key in ("vendor", "maker", "name", "family")}
        hint = did_you_mean(words[-1], sorted(known))
        raise UsageError(f"no model matches {' '.join(words)!r}{hint}")
    return found


def _is_about(row: dict[str, Any], word: str) -> bool:
    vendors = [str(row[key]).lower() for key in ("vendor", "maker")]
    others = [str(row[key]).lower() for key in ("name", "product", "family")]
    if any(fnmatchcase(text, word) for text in (*vendors, *others)):
        return True
    # A vendor's name is meant as a whole: `mlu` isn't what `ml` is for.
    return any(word in text for text in others)


def models_table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    # A model's name is there to be copied. Beside all else, a narrow terminal has no room for it.
    keys = [key for key in _COLUMNS if key != "product" or (width() or _WIDE) >= _WIDE]
    sides = "".join("r" if key in _NUMBERS else " " for key in keys)
    header = [_TITLES.get(key, key.upper()) for key in keys]
    yield from table(header, ([row[key] for key in keys] for row in rows), sides)
