"""NodeState: what is true of the node now, and who is told when it changes."""

from collections.abc import Iterable

import anyio

from hami_mock.inventory import Card


class NodeState:
    """The cards and their health. Whoever shows a part of it waits for `next_change`."""

    def __init__(self, cards: Iterable[Card]) -> None:
        self.cards = {card.uuid: card for card in cards}
        self._unhealthy: frozenset[str] = frozenset()
        self._changed = anyio.Event()

    @property
    def unhealthy(self) -> frozenset[str]:
        """The UUIDs of the cards that are unhealthy now."""
        return self._unhealthy

    def set_health(self, uuid: str, *, healthy: bool) -> None:
        """Make a card healthy or unhealthy. Raises KeyError if there is no such card."""
        self.cards[uuid]
        before = self._unhealthy
        self._unhealthy = before - {uuid} if healthy else before | {uuid}
        if self._unhealthy != before:
            self._changed.set()
            self._changed = anyio.Event()

    def next_change(self) -> anyio.Event:
        """Return an event that is set at the next change.

        Take it before looking at the state, so that no change falls between look and wait.
        """
        return self._changed
