"""Shows the cards to whoever asks the driver: a root on this machine, and a state file in it."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.kit.concurrency import first_of
from hami_mock.node.cards import Card
from hami_mock.node.state import NodeState
from hami_mock.views.driver.cards import DriverCards
from hami_mock.views.driver.making import Done, Root, What, make_steps
from hami_mock.views.driver.root import (
    SETTERS,
    STATE_FOLDER,
    InContainers,
    Programs,
    Shared,
    Step,
    driven,
)
from hami_mock.views.driver.setter_socket import SetterSocket
from hami_mock.views.driver.setters import RESULTS, Setters
from hami_mock.views.driver.state_file import Shown, StateFile

_SECONDS = 1.0
"""How often cards are looked at that nothing happens to: their energy is a count."""

_log = logging.getLogger(__name__)


class DriverView:
    """Keeps a driver root in step with the state."""

    name = "driver"

    def __init__(
        self, state: NodeState, folder: Path, version: str, compiled: Callable[[], Programs]
    ) -> None:
        self._state = state
        self._folder = folder
        self._version = version
        self._compiled = compiled
        self._file = StateFile(folder / STATE_FOLDER)
        self._root = Root(folder, self._show)
        self._cards: DriverCards | None = None
        self._shown: Shown | None = None
        self._making = anyio.Lock()
        self._made_for: object = None
        self._writes = 0
        self._within = InContainers()
        self.notice = ""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep up until cancelled. What was written last stays then, as with a real driver.

        Raises StartError if the root can't be made, or somebody else has it.
        """
        state = self._state
        self._made_for = None  # a root of before may be gone
        try:
            await self._follow()
            async with anyio.create_task_group() as tasks:
                await tasks.start(SetterSocket(self._folder / SETTERS, self._set).run)
                tasks.start_soon(self._tell_xids)
                task_status.started()
                while True:
                    # Not the load alone: who has come or gone is shown before it knows.
                    told = [
                        told_by.next()
                        for told_by in (
                            state.changes, state.load_changes, state.events.more,
                            state.holders.changes, state.pod_changes,
                        )
                    ]  # fmt: skip
                    await self._follow()
                    self._keep_up()
                    # While nobody holds a card, only who looks lets time pass on it.
                    with anyio.move_on_after(_SECONDS):
                        await first_of(*(event.wait for event in told))
        finally:
            self._file.close()
            self._root.release()

    def status(self) -> dict[str, Any]:
        return {
            "root": str(self._folder),
            "cards": len(self._cards.all) if self._cards else 0,
            "events": self._file.events,
            "writes": self._writes,
        }

    def given_with(self, cards: Iterable[Card]) -> tuple[Sequence[Shared], Sequence[Shared]]:
        """Return the mounts and the device nodes of a container that gets these cards."""
        devices = self._within.devices
        own = [node for card in cards for node in devices.get(card.uuid, ())]
        return (self._within.mounts, [*own, *devices[""]]) if own else ((), ())

    async def _follow(self) -> None:
        """Make the root for the cards that there are now, unless it was made for them."""
        async with self._making:
            if self._state.node.cards is not self._made_for:
                await self._make_root()

    async def _make_root(self) -> None:
        wanted = self._state.node.cards
        driver, its = driven(wanted)
        cards = DriverCards(driver, its, self._version, self._state)
        if self._cards is not None:
            cards.take_over(self._cards)
        # Here, not in the thread: the state may change meanwhile.
        self._shown = cards.shown()
        make = partial(
            make_steps, self._root, frozenset(Step), driver, cards.machine, self._compiled
        )
        done, self._within = await anyio.to_thread.run_sync(make)
        self._cards, self._made_for = cards, wanted
        self._tell(done)

    async def _tell_xids(self) -> None:
        """Tell of each Xid before anybody makes lists of devices, which may take long.

        Who waits for one event wakes a turn of the loop before those who wait for the first of
        several, as all do who make such lists.
        """
        while True:
            changed = self._state.changes.next()
            # While the root is made for other cards, its thread alone writes.
            if self._cards is not None and self._state.node.cards is self._made_for:
                self._writes += self._cards.tell_xids(self._file)
            await changed.wait()

    def _keep_up(self) -> None:
        if self._cards is not None:
            self._writes += self._cards.keep_up(self._file)

    async def _set(self, request: Mapping[str, Any]) -> Mapping[str, int]:
        """Do what a setter asks, and show it before it is answered."""
        await self._follow()
        cards = self._cards
        if cards is None or request["generation"] != self._file.generation:
            return {"result": RESULTS["NOT_FOUND"]}
        if request["card"] >= len(cards.all):
            return {"result": RESULTS["INVALID_ARGUMENT"]}
        card = cards.all[request["card"]]
        if cards.is_lost(card):
            return {"result": RESULTS["GPU_IS_LOST"]}
        setters = Setters(self._state, cards)
        answer = setters.do(card, request)
        self._keep_up()
        return answer

    def _show(self) -> bool:
        assert self._shown is not None
        return self._file.show(self._shown)

    def _tell(self, done: Sequence[Done]) -> None:
        left = [f"{self._folder / e.path}: {e.why}" for e in done if e.what is What.LEFT]
        if left:
            more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
            self.notice = f"{left[0]}{more}"
            _log.warning("driver: %s", self.notice)
