"""The state file as a reader sees it, and a node for tests of what writes it."""

from pathlib import Path
from typing import Any

from hami_mock.node.state import NodeState
from hami_mock.views.driver.cards import DriverCards
from hami_mock.views.driver.layout import (
    CARD,
    HEADER,
    STATE_FILE,
    card_offset,
    live_offset,
)
from hami_mock.views.driver.root import Programs, driven
from hami_mock.views.driver.state_file import StateFile
from tests.unit.builders import laid_out

VERSION = "580.95.05"
COMPILED = Programs(b"a library", b"a placeholder", b"a program")


def header(folder: Path) -> dict[str, Any]:
    return HEADER.unpack((folder / STATE_FILE).read_bytes()[: HEADER.size])


def card(folder: Path, index: int) -> dict[str, Any]:
    """A card's record, identity and live part."""
    data = (folder / STATE_FILE).read_bytes()
    return CARD.unpack(data[card_offset(index) : card_offset(index) + CARD.size])


def live(folder: Path, index: int) -> dict[str, Any]:
    found: dict[str, Any] = card(folder, index)["live"]
    return found


def events(folder: Path) -> list[tuple[int, int, int, int]]:
    """Sequence, card, type and data of the events, in their order."""
    ring = header(folder)["events"]
    found = [(e["sequence"], e["card"], e["type"], e["data"]) for e in ring if e["sequence"]]
    return sorted(found)


def node_state(**flags: object) -> NodeState:
    return NodeState(laid_out(None, **flags))


def driver_cards(state: NodeState, version: str = VERSION) -> DriverCards:
    driver, cards = driven(state.node.cards)
    return DriverCards(driver, cards, version, state)


def shown_in(
    folder: Path, state: NodeState, version: str = VERSION
) -> tuple[StateFile, DriverCards]:
    """Show a node's cards in a folder."""
    file, cards = StateFile(folder), driver_cards(state, version)
    file.show(cards.shown())
    return file, cards


def sequences(folder: Path, count: int) -> list[int]:
    data = (folder / STATE_FILE).read_bytes()
    places = map(live_offset, range(count))
    return [int.from_bytes(data[place : place + 8], "little") for place in places]
