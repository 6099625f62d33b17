"""What a maker's own tool prints, as data: lines into which a card's values are filled.

Loaded when `hami-mock smi` draws one. A line is a format: {power:>8} is a value by a name that
`cli.smi_cards` knows, or one of the tool's own `cells`, in eight columns and set to the right. A
text that is longer than its columns is cut.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Lines = tuple[str, ...]
Values = Mapping[str, Any]
"""What a card shows, by name; None: it shows nothing, for it is lost or has no such thing."""


@dataclass(frozen=True)
class Processes:
    """The programs on the cards, below them: a row each, or a line that says that there is none.

    `by_card`: each card has rows of its own, or that line, and `end` after them.
    """

    head: Lines
    row: str
    none: str
    end: Lines
    by_card: bool = False


@dataclass(frozen=True)
class Parts:
    """What was cut out of the cards, below them: `part` for each, or `none`.

    It isn't there at all unless a card can be cut now.
    """

    head: Lines
    part: Lines
    none: Lines


@dataclass(frozen=True)
class View:
    """What one command of a tool prints: `card` for each card, `head` and `foot` once.

    `instance` follows a card for each part that was cut out of it.
    """

    card: Lines
    instance: Lines = ()
    head: Lines = ()
    foot: Lines = ()
    parts: Parts | None = None
    processes: Processes | None = None


def _nothing_more(_values: Values) -> Values:
    return {}


@dataclass(frozen=True)
class Tool:
    """A maker's tool.

    - views: what it prints, by the words after its name; the first is the table of all cards
    - version: its own, and its driver's, unless the node or the maker's exporter says that
    - cells: texts made of several values, by the names that lines call them
    - health: its word for each state of a card
    - unknown: what stands for a value that a card hasn't; lost: for all of a lost card's
    - more: makes values that only this tool shows; more_of_part: likewise, of a part of a card
    - query: its flag that names fields, if it has one
    """

    name: str
    views: Mapping[str, View]
    version: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)
    health: Mapping[str, str] = field(default_factory=dict)
    unknown: str = "N/A"
    lost: str = ""
    more: Callable[[Values], Values] = _nothing_more
    more_of_part: Callable[[Values], Values] = _nothing_more
    query: str = ""

    @property
    def table(self) -> View:
        return next(iter(self.views.values()))
