"""Tables and a little colour: good to look at in a terminal, plain where it is piped."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import chain, zip_longest

WIDEST = 100
"""Lines of prose that are longer are hard to read, however wide the terminal is."""

_GAP = "  "
_NARROWEST_PROSE = 30
_NARROWEST = 6
"""A column that is made narrower says nothing any more."""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Style(StrEnum):
    """ANSI styles."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    CYAN = "36"


def is_fancy() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def is_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")


def width() -> int | None:
    """Return the columns of the terminal; None where stdout is none, and lines may be long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def prose_width() -> int:
    """Return the columns for lines of prose: the terminal's, or $COLUMNS where it is piped."""
    columns = shutil.get_terminal_size((WIDEST, 0)).columns
    return min(max(columns, _NARROWEST_PROSE), WIDEST)


def paint(text: str, *styles: str) -> str:
    """Return the text in styles, or as it is where nobody would see them.

    A style is a `Style`, or another code of ANSI's: 38;5;160.
    """
    return f"\x1b[{';'.join(styles)}m{text}\x1b[0m" if styles and is_fancy() else text


def wrap(text: str, columns: int) -> list[str]:
    """Return the text as lines; a path or a flag isn't broken at its dashes."""
    import textwrap  # few commands need it

    return textwrap.wrap(text, columns, break_on_hyphens=False, break_long_words=False) or [""]


def shorten(text: str, columns: int) -> str:
    if len(text) <= columns:
        return text
    head = columns // 2
    return f"{text[:head]}…{text[len(text) - columns + head + 1 :]}"


def clip(line: str, columns: int) -> str:
    """Return as much of a line as fits, without its colours if it doesn't: no terminal wraps it."""
    return line if _length(line) <= columns else _ANSI.sub("", line)[:columns]


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    columns: str = "",
    most: int | None = None,
) -> list[str]:
    """Return the lines of a table. `columns` has a letter for each column: r sets it to the right.

    Where it is wider than `most`, or without that than the terminal, columns with a capital letter
    (R, or L for the left) are left out if they say nothing. Then the widest columns of text give
    way: what has spaces is wrapped, and a single word is shortened in its middle. Columns with k
    keep their width.
    """
    sides = columns.ljust(len(header))
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = _widths(cells)
    most = most or width()
    if _excess(widths, most) > 0:
        kept = [i for i, side in enumerate(sides) if not side.isupper() or _says(cells, i)]
        sides = "".join(sides[i] for i in kept)
        cells = [[row[i] for i in kept] for row in cells]
        widths = _narrowed(_widths(cells), sides.lower(), most)

    def lines(row: Sequence[str]) -> list[str]:
        folded = map(_folded, row, widths)
        return [
            _GAP.join(map(_aligned, line, widths, sides.lower())).rstrip()
            for line in zip_longest(*folded, fillvalue="")
        ]

    first, *others = map(lines, cells)
    return [*(paint(line, Style.BOLD) for line in first), *chain.from_iterable(others)]


def bar(share: float, width: int = 20) -> str:
    """Return a bar that is filled to a share from 0 to 1."""
    filled = round(min(max(share, 0), 1) * width)
    full, empty = ("█", "░") if is_fancy() else ("#", ".")
    return full * filled + empty * (width - filled)


def _widths(cells: list[list[str]]) -> list[int]:
    return [max(map(_length, column)) for column in zip(*cells, strict=True)]


def _excess(widths: list[int], most: int | None) -> int:
    return 0 if most is None else sum(widths) + len(_GAP) * (len(widths) - 1) - most


def _says(cells: list[list[str]], column: int) -> bool:
    return any(row[column] not in ("", "-", "0") for row in cells[1:])


def _narrowed(widths: list[int], sides: str, most: int | None) -> list[int]:
    """Return the widths, with columns of text narrowed until the table fits, or can't."""
    while _excess(widths, most) > 0:
        # Half a number would be another number.
        able = [i for i, side in enumerate(sides) if side not in "kr" and widths[i] > _NARROWEST]
        if not able:
            break
        widths[max(able, key=widths.__getitem__)] -= 1
    return widths


def _folded(cell: str, columns: int) -> list[str]:
    """Return the lines of a cell; its colour, if it is one for all of it, is that of each line."""
    if _length(cell) <= columns:
        return [cell]
    plain = _ANSI.sub("", cell)
    lines = [shorten(line, columns) for line in wrap(plain, columns)]
    colours = _ANSI.findall(cell)
    if len(colours) == 2 and cell.startswith(colours[0]) and cell.endswith(colours[1]):
        return [f"{colours[0]}{line}{colours[1]}" for line in lines]
    return lines


def _aligned(cell: str, columns: int, side: str) -> str:
    space = " " * (columns - _length(cell))
    return space + cell if side == "r" else cell + space


def _length(cell: str) -> int:
    return len(_ANSI.sub("", cell)) if "\x1b" in cell else len(cell)
