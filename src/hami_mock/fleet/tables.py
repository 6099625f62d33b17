"""Tables in CSV whose columns are found by their header; others are passed over. Pure."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hami_mock.errors import UsageError
from hami_mock.kit.text import cut
from hami_mock.kit.values import Mistakes

MOST_ROWS = 1_000_000
MOST = 10**9
_MOST_SECONDS = 2**40


class Row(NamedTuple):
    """A line of the file by column, its place, and where its mistakes go."""

    values: Mapping[str, str]
    place: str
    mistakes: Mistakes

    def whole(self, key: str, most: int = MOST, default: int = 0) -> int:
        """Return a whole number; tables write 1000.0 too."""
        number = self._number(key, most)
        if number is None or number.is_integer():
            return default if number is None else int(number)
        self.refuse(key, f"a whole number from 0 to {most}")
        return default

    def seconds(self, key: str) -> float | None:
        return self._number(key, _MOST_SECONDS)

    def needed_seconds(self, key: str) -> float:
        """Return a time that each row of a table with such a column must have; 0 without one."""
        if key in self.values and not self.text(key):
            self.refuse(key, "a time in seconds, as other rows have it")
        return self.seconds(key) or 0.0

    def text(self, key: str) -> str:
        return cut((self.values.get(key) or "").strip())

    def _number(self, key: str, most: int) -> float | None:
        text = (self.values.get(key) or "").strip()
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if 0 <= number <= most:
            return number
        self.refuse(key, f"a number from 0 to {most}")
        return None

    def refuse(self, key: str, allowed: str) -> None:
        """Note that a value can't be, and what it must be."""
        self.mistakes.refuse(f"{self.place}: {key}", (self.values.get(key) or "").strip(), allowed)


def read_table(path: str, text: Iterable[str], needed: Sequence[str]) -> Iterator[Row]:
    """Yield the rows; raise UsageError for what no table is, and at the end for all mistakes."""
    mistakes = Mistakes(path)
    reader = csv.DictReader(text)
    try:
        # Spreadsheets begin a file with a mark of its encoding.
        header = [name.removeprefix("\ufeff").strip() for name in reader.fieldnames or ()]
        reader.fieldnames = header
        if missing := [column for column in needed if column not in header]:
            raise UsageError(
                f"{path}: line 1: there is no column {' and no column '.join(missing)}: write a "
                "line with the names of the columns first, as Alibaba's openb traces have it"
            )
        for number, values in enumerate(reader, start=1):
            if number > MOST_ROWS:
                raise UsageError(f"{path}: it has more than {MOST_ROWS} rows")
            yield Row(values, f"line {reader.line_num}", mistakes)
    except csv.Error as error:
        raise UsageError(f"{path}: line {reader.line_num}: {error}") from error
    if mistakes.lines:
        raise UsageError(mistakes.lines)
