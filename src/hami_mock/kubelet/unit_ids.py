"""Short device IDs for units (a MiB of memory, a percent of compute), by arithmetic.

Each byte of an ID counts (`wire`). So it is the unit's number written in base 89, three characters
for as long as they last and then four. The first one is drawn from `heads`, a set that belongs to
one resource alone: no two resources can share an ID. Most heads belong to the two largest
resources; the many small ones have IDs that begin with `LEAD`, and heads of their own behind it.

Nothing is stored per unit: an ID is computed from its number, a number from its ID, and the IDs of
a whole range come out as columns of characters, at the speed of memory copies.
"""

from collections.abc import Iterator

# All of printable ASCII but `<>&"\`, which JSON escapes: the kubelet writes IDs to a JSON file.
ALPHABET = (
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.~+=!#$%'()*,/:;?@[]^`{|}"
)
BASE = len(ALPHABET)
LEAD = "{"
"""No head: what heads begin with that have their place behind it."""
WIDTHS = (3, 4)
_DIGITS = {chr(symbol): digit for digit, symbol in enumerate(ALPHABET)}

Numbers = tuple[range, ...]
"""Numbers as runs: a quarter of a million of them are usually one run for each card."""

Columns = tuple[bytes, ...]
"""The characters of many IDs of one width: first all first characters, then all second, …"""


class UnitIds:
    """The IDs of one resource: a two-way map between numbers from 0 on and short strings."""

    def __init__(self, heads: str) -> None:
        self.heads = heads
        self._lead = LEAD if heads.startswith(LEAD) else ""
        self._heads = heads.removeprefix(LEAD).encode("ascii")
        self._head_digits = {chr(head): digit for digit, head in enumerate(self._heads)}
        self.capacity = 0
        self._numbers: dict[int, range] = {}
        """Width → the numbers whose IDs are so wide."""
        for width in WIDTHS:
            end = self.capacity + int(len(self._heads) * BASE ** (width - 1))
            self._numbers[width] = range(self.capacity, end)
            self.capacity = end

    def encode(self, number: int) -> str:
        """Return the ID of a number. Raises IndexError beyond `capacity`."""
        width = next((width for width, own in self._numbers.items() if number in own), None)
        if width is None:
            raise IndexError("no such unit")
        number -= self._numbers[width].start
        tail = []
        for _ in range(width - 1):
            number, digit = divmod(number, BASE)
            tail.append(ALPHABET[digit])
        return self._lead + bytes([self._heads[number], *reversed(tail)]).decode("ascii")

    def decode(self, device_id: str) -> int | None:
        """Return the number of an ID, or None if it is none of this resource's."""
        if not device_id.startswith(self._lead):
            return None
        device_id = device_id.removeprefix(self._lead)
        try:
            offset = self._numbers[len(device_id)].start
            number = self._head_digits[device_id[0]]
            for character in device_id[1:]:
                number = number * BASE + _DIGITS[character]
        except KeyError:
            return None
        return offset + number

    def columns(self, numbers: Numbers) -> Iterator[Columns]:
        """Yield the IDs of numbers, one block for each width in use."""
        for width, own in self._by_width(numbers):
            lead = [self._lead.encode("ascii") * sum(map(len, own))] if self._lead else []
            places = enumerate([*[ALPHABET] * (width - 1), self._heads])
            columns = [b"".join(_column(symbols, at, run) for run in own) for at, symbols in places]
            yield (*lead, *reversed(columns))

    def lengths(self, numbers: Numbers) -> Iterator[tuple[int, int]]:
        """Yield (length, how many) for the same numbers as `columns`.

        Those beyond `capacity`, which nobody can list, would take one character more.
        """
        beyond = sum(map(len, numbers))
        for width, own in self._by_width(numbers):
            many = sum(map(len, own))
            beyond -= many
            yield len(self._lead) + width, many
        if beyond:
            yield len(self._lead) + WIDTHS[-1] + 1, beyond

    def _by_width(self, numbers: Numbers) -> Iterator[tuple[int, list[range]]]:
        """Yield each width in use with its numbers, counted from the first of that width."""
        for width, span in self._numbers.items():
            offset = span.start
            own = [
                range(max(run.start, offset) - offset, min(run.stop, span.stop) - offset)
                for run in numbers
                if run.start < span.stop and run.stop > offset
            ]
            if own:
                yield width, own


def _column(symbols: bytes, power: int, run: range) -> bytes:
    """Return what one place shows while the number counts up: each symbol `step` times over."""
    step, many = BASE**power, len(symbols)
    if step == 1:
        skipped = run.start // many * many
        cycles = symbols * -(-(run.stop - skipped) // many)
        return cycles[run.start - skipped : run.stop - skipped]
    first = run.start // step
    turns = [turn % many for turn in range(first, -(-run.stop // step))]
    shown = b"".join([symbols[turn : turn + 1] * step for turn in turns])
    return shown[run.start - first * step :][: len(run)]
