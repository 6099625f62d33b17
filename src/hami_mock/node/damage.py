"""What faults and Xids have done to the cards, kept as the state changes. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from hami_mock.node.fault import Fault
from hami_mock.node.physics import Condition, Errors, Trouble, errors_of, trouble_of
from hami_mock.node.state import NodeState

_NO_TROUBLE, _NO_ERRORS = Trouble(), Errors()


class Damage:
    """Trouble that lasts and errors that happened, by card."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._faults: tuple[Fault, ...] = ()
        self._troubles: dict[str, Trouble] = {}
        self._xids: Counter[tuple[str, int]] = Counter()
        self._last_xids: dict[str, int] = {}
        self._errors: dict[str, Errors] = {}

    def note(self) -> None:
        """Look at the state again; what hasn't changed costs nothing."""
        if self._state.faults is not self._faults:
            self._note_faults()
        if self._state.xids != self._xids:
            self._note_xids()

    def of(self, uuid: str) -> Condition:
        return Condition(self._troubles.get(uuid, _NO_TROUBLE), self._errors.get(uuid, _NO_ERRORS))

    def _note_faults(self) -> None:
        self._faults = self._state.faults
        by_card: Mapping[str, list[Fault]] = defaultdict(list)
        for fault in self._faults:
            for uuid in fault.targets & self._state.cards.keys():
                by_card[uuid].append(fault)
        self._troubles = {uuid: trouble_of(faults) for uuid, faults in by_card.items()}

    def _note_xids(self) -> None:
        counts: Mapping[str, dict[int, int]] = defaultdict(dict)
        for (uuid, xid), count in self._state.xids.items():
            counts[uuid][xid] = count
            if count != self._xids[uuid, xid]:
                self._last_xids[uuid] = xid
        self._xids = self._state.xids.copy()
        self._errors = {
            uuid: errors_of(xids, self._last_xids[uuid]) for uuid, xids in counts.items()
        }
