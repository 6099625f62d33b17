"""How far a fleet has come: a line with a bar on a terminal, and now and then a plain line else."""

import sys
import time

import anyio

from hami_mock.fleet.budget import Budget
from hami_mock.fleet.fleet import Fleet
from hami_mock.kit import durations
from hami_mock.kit.terminal import bar

_LIVE_SECONDS = 0.2
_PLAIN_SECONDS = 5.0


class Progress:
    """Tells of the nodes until all are there and ready, or have to be made no more."""

    def __init__(self, fleet: Fleet, budget: Budget) -> None:
        self._fleet = fleet
        self._budget = budget
        self._is_live = sys.stderr.isatty()

    async def run(self) -> None:
        began, told = time.monotonic(), ""
        while True:
            text, is_done = self.line()
            if self._is_live:
                self._say(f"\r\x1b[K{text}", end="\n" if is_done else "")
            elif text != told:
                self._say(text)
            told = text
            if is_done:
                seconds = durations.about(time.monotonic() - began)
                self._say(f"all {len(self._fleet.members)} nodes are ready after {seconds}")
                return
            await anyio.sleep(_LIVE_SECONDS if self._is_live else _PLAIN_SECONDS)

    def line(self) -> tuple[str, bool]:
        """Return how far it is, and whether it can't be further."""
        members = self._fleet.members.values()
        wanted = len(members)
        there = sum(member.is_there for member in members)
        ready = sum(member.is_ready for member in members)
        stopped = sum(member.is_stopped for member in members)
        share = (there + ready) / (2 * wanted) if wanted else 1.0
        text = (
            f"{bar(share)} {share:4.0%}  {there} of {wanted} nodes exist, {ready} ready, "
            f"{self._budget.per_second:.0f} writes/s"
        )
        is_done = there == wanted and ready + stopped >= wanted and not self._fleet.leaving
        return text, is_done

    @staticmethod
    def _say(text: str, end: str = "\n") -> None:
        print(text, end=end, file=sys.stderr, flush=True)
