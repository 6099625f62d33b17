"""Tables and a little colour: good to look at in a terminal, plain where it is piped."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum

WIDEST = 100
"""Lines of prose that are longer are hard to read, however wide the terminal is."""

_GAP = "  "
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
    """Tell whether stdout is a terminal that wants colour."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def is_unicode() -> bool:
    """Tell whether any character can be written to stdout."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def width() -> int | None:
    """Return the columns of the terminal; None where stdout is none, and lines may be long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def paint(text: str, *styles: Style) -> str:
    """Return the text in styles, or as it is where nobody would see them."""
    return f"\x1b[{';'.join(styles)}m{text}\x1b[0m" if styles and is_fancy() else text


def wrap(text: str, columns: int) -> list[str]:
    """Return the text as lines; a path or a flag isn't broken at its dashes."""
    import textwrap  # few commands need it

    return textwrap.wrap(text, columns, break_on_hyphens=False, break_long_words=False) or [""]


def shorten(text: str, columns: int) -> str:
    """Return the text with an ellipsis in its middle, if it is too long."""
    if len(text) <= columns:
        return text
    head = columns // 2
    return f"{text[:head]}…{text[len(text) - columns + head + 1 :]}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]], numbers: str = "") -> list[str]:
    """Return the lines of a table; `numbers` has an r for each column that is set to the right.

    In a terminal that is too narrow, the widest columns of text give way: what has spaces is
    wrapped, and a single word is shortened in its middle.
    """
    right = numbers.ljust(len(header))
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = _fitted(
        [max(_length(row[column]) for row in cells) for column in range(len(header))],
        # Half a number would be another number.
        [0 if side == "r" else _NARROWEST for side in right],
    )

    def lines(row: Sequence[str]) -> list[str]:
        columns = [_folded(cell, columns) for cell, columns in zip(row, widths, strict=True)]
        height = max(map(len, columns))
        padded = [column + [""] * (height - len(column)) for column in columns]
        return [
            _GAP.join(map(_aligned, line, widths, right)).rstrip()
            for line in zip(*padded, strict=True)
        ]

    first, *others = map(lines, cells)
    return [*(paint(line, Style.BOLD) for line in first), *(one for row in others for one in row)]


def bar(share: float, width: int = 20) -> str:
    """Return a bar that is filled to a share from 0 to 1."""
    filled = round(min(max(share, 0), 1) * width)
    full, empty = ("█", "░") if is_fancy() else ("#", ".")
    return full * filled + empty * (width - filled)


def _fitted(widths: list[int], narrowest: list[int]) -> list[int]:
    """Return the widths of columns, narrowed until the table fits the terminal, or can't."""
    columns = width()
    if columns is None:
        return widths
    widths = list(widths)
    spare = columns - len(_GAP) * (len(widths) - 1) - sum(widths)
    while spare < 0:
        able = [i for i, least in enumerate(narrowest) if least and widths[i] > least]
        if not able:
            break
        widths[max(able, key=widths.__getitem__)] -= 1
        spare += 1
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
