"""Tables and a little colour: good to look at in a terminal, plain where it is piped."""

import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum


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


def paint(text: str, *styles: Style) -> str:
    """Return the text in styles, or as it is where nobody would see them."""
    return f"\x1b[{';'.join(styles)}m{text}\x1b[0m" if styles and is_fancy() else text


def table(header: Sequence[str], rows: Iterable[Sequence[object]], numbers: str = "") -> list[str]:
    """Return the lines of a table; `numbers` has an r for each column that is set to the right."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    right = numbers.ljust(len(header))

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, right, strict=True)
        ).rstrip()

    first, *others = map(line, cells)
    return [paint(first, Style.BOLD), *others]


def bar(share: float, width: int = 20) -> str:
    """Return a bar that is filled to a share from 0 to 1."""
    filled = round(min(max(share, 0), 1) * width)
    full, empty = ("█", "░") if is_fancy() else ("#", ".")
    return full * filled + empty * (width - filled)
