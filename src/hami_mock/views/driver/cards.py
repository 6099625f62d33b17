"""What the state file has of a node's cards: compared with the state, written where it differs."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from hami_mock.kubelet.holder import Container
from hami_mock.node.cards import Card
from hami_mock.node.fault_kinds import UNHEALTHY
from hami_mock.node.physics import idle_reading
from hami_mock.node.readings import Reading
from hami_mock.node.state import NodeState
from hami_mock.node.xid import loses_card
from hami_mock.vendors.driver import Driver, Machine
from hami_mock.views.driver.card_records import LiveCard, Seen, identity
from hami_mock.views.driver.state_file import Shown, StateFile, microseconds

_TIMESTAMP_BYTES = 8


class _Written(NamedTuple):
    """What the file has of a card: the numbers without their time, and the rest."""

    numbers: bytes
    rest: bytes


class DriverCards:
    """The cards that a driver shows, and what the state file has of them."""

    def __init__(
        self, driver: Driver, cards: Sequence[Card], version: str, state: NodeState
    ) -> None:
        machine = Machine(cards, version, os.cpu_count() or 1)
        self.machine = machine
        self.driver = driver
        self._state = state
        self.all = cards
        self._live = [LiveCard(card, machine, driver) for card in cards]
        self._written: list[_Written | None] = [None] * len(cards)
        self._xids = dict(state.xids)
        self._last_xids: dict[str, int] = {}
        self._readings: dict[str, Reading] = {}
        self._begun: dict[Container, int] = {}

    def shown(self) -> Shown:
        """Return all of it, for a file that may have nothing yet."""
        found = []
        for index in range(len(self.all)):
            written, timestamp = self._current(index)
            self._written[index] = written
            found.append(timestamp + written.numbers + written.rest)
        identities = [identity(card, self.machine, self.driver) for card in self.all]
        return Shown(self.driver.about(self.machine.version), identities, found)

    def keep_up(self, file: StateFile) -> int:
        """Write the cards that show something else than before, and events; return how many."""
        # Cards that nobody waits for are written last.
        count = self.tell_xids(file)
        self._forget_ended()
        return count + self._write_changes(file, range(len(self.all)))

    def tell_xids(self, file: StateFile) -> int:
        """Write what Xids have happened, and what their cards show now; return how many cards."""
        # First what is so, then the word that it is.
        xids = self._new_xids()
        count = self._write_changes(file, sorted({card for card, _ in xids}))
        for card, xid in xids:
            for kind in self.driver.event_types(xid):
                file.add_event(card, kind, xid)
        return count

    def is_lost(self, card: Card) -> bool:
        """Tell whether a card is gone, or has had an error after which no driver reaches it."""
        uuid, state = card.uuid, self._state
        if uuid in state.lost or uuid not in state.unhealthy:
            return uuid in state.lost
        failures = (each for each in state.faults_of(uuid) if each.kind is UNHEALTHY)
        return any(loses_card(each.reason) for each in failures)

    def take_over(self, before: "DriverCards") -> None:
        """Go on with what cards of before have shown, and with what setters have decided on."""
        self._xids, self._last_xids = before._xids, before._last_xids
        self._readings, self._begun = before._readings, before._begun
        known = dict(zip(before.all, before._live, strict=True))
        for card, live in zip(self.all, self._live, strict=True):
            if card in known:
                live.set_values = known[card].set_values
                live.cleared = known[card].cleared

    def set_fields(self, card: Card, values: Mapping[str, int]) -> None:
        """Show values that a setter has set, from the next time on."""
        self._live[self.all.index(card)].set_values.update(values)

    def clear_errors(self, card: Card, *, ever: bool) -> None:
        """Count ECC errors from 0 again: those of all time, or those since it was loaded."""
        self._live[self.all.index(card)].clear_errors(ever=ever)

    def _write_changes(self, file: StateFile, cards: Iterable[int]) -> int:
        count = 0
        for index in cards:
            before = self._written[index]
            now, timestamp = self._current(index)
            if now == before:
                continue
            is_short = before is not None and now.rest is before.rest
            file.write(index, timestamp + now.numbers + (b"" if is_short else now.rest))
            self._written[index] = now
            count += 1
        return count

    def _new_xids(self) -> list[tuple[int, int]]:
        """Return the Xids since the last time, as card and number, each as often as it was."""
        if self._xids == self._state.xids:
            return []
        before, self._xids = self._xids, dict(self._state.xids)
        places = {card.uuid: index for index, card in enumerate(self.all)}
        found = []
        for (uuid, xid), count in self._xids.items():
            new = count - before.get((uuid, xid), 0)
            if new > 0 and uuid in places:
                self._last_xids[uuid] = xid
                found += [(places[uuid], xid)] * new
        return found

    def _current(self, index: int) -> tuple[_Written, bytes]:
        card, live = self.all[index], self._live[index]
        uuid = card.uuid
        # A card that is lost shows nothing: what was read last stays.
        reading = self._state.readings.get(uuid) or self._readings.get(uuid) or idle_reading(card)
        self._readings[uuid] = reading
        limit = self._state.power_limits.get(uuid)
        if limit is not None:
            # The load takes a second to know; who has set it is answered now.
            reading = replace(reading, power_limit=limit)
        now = microseconds()
        usages = self._state.usages(card)
        for usage in usages:
            if usage.container not in self._begun:
                pod = self._state.pods.get(usage.container[:2])
                begun = int(pod.started * 1e6) if pod and pod.started else now
                self._begun[usage.container] = begun
        # Few cards are cut, and who holds one is known here already.
        is_cut = uuid in self._state.cuts or any(usage.instances for usage in usages)
        cut = self._state.cut_of(card) if is_cut else None
        seen = Seen(usages, cut, self.is_lost(card))
        rest = live.rest(reading, seen, self._begun)
        numbers = live.numbers(
            reading,
            seen,
            failed=uuid in self._state.unhealthy or uuid in self._state.lost,
            xid=self._last_xids.get(uuid, 0),
            time=now,
        )
        return _Written(numbers[_TIMESTAMP_BYTES:], rest), numbers[:_TIMESTAMP_BYTES]

    def _forget_ended(self) -> None:
        """Forget when containers began that hold nothing any more."""
        holding = {h.container for held in self._state.holdings().values() for h in held}
        self._begun = {who: when for who, when in self._begun.items() if who in holding}
