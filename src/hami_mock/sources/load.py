"""How busy the cards are: what their containers do, and what a card's nature makes of it."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil, inf
from typing import Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import UsageError
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import first_of
from hami_mock.kubelet.holder import Container
from hami_mock.node.cards import Card
from hami_mock.node.damage import Damage
from hami_mock.node.holders import Load
from hami_mock.node.load_reader import read
from hami_mock.node.physics import Inner, Work, capacity, reading, step
from hami_mock.node.pods import Pod
from hami_mock.node.readings import Reading
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings
from hami_mock.sources.late_load import Start
from hami_mock.sources.load_plan import Chooser, Held, Job, Rule, listed, wishes, work_of
from hami_mock.vendors.physics import Traits, traits

_SECONDS = 1.0
_LONGEST_STEP = 30.0
_MOST_STEPS = 20
"""With a large time factor, a second is that many steps of the model at most."""
_PLAN_SECONDS = 5.0
"""How often annotations are looked at, if nothing tells of a change."""
_MOST_RULES = 1000


class LoadSource:
    """Writes the state's loads and readings, about once a second.

    While nobody holds a card it rests: only time passes then, and it is made up for when something
    changes or when somebody looks.
    """

    def __init__(
        self,
        state: NodeState,
        settings: Callable[[], Settings],
        clock: Callable[[], float] = time.time,
        settings_changes: Broadcast | None = None,
        since: Start | None = None,
    ) -> None:
        self._state = state
        self._settings = settings
        self._settings_changes = settings_changes or Broadcast()
        self._clock = clock
        self.time = clock()
        """The model's time, in seconds since 1970: that of the clock, or faster."""
        self._chooser = Chooser(settings().seed or 0, None)
        self._jobs: dict[str, list[Job]] = {}
        self._begun: dict[tuple[Container, str], float] = {}
        """When containers began, by the pod's UID too: another pod may have the same name."""
        self._inner: dict[str, Inner] = {}
        self._damage = Damage(state)
        self._planned = -_PLAN_SECONDS
        self._changes: tuple[anyio.Event, ...] = ()
        self._usage_changes: tuple[anyio.Event, ...] = ()
        """Those of the changes that may tell of other containers on a card."""
        self._resting: list[Card] | None = None
        """The cards that were shown last, if nobody held one; else None."""
        self._factor = settings().time_factor
        self._seen = inf
        """When time was last made to pass, of the monotonic clock; never while it doesn't run."""
        if since is not None:
            self.time -= time.monotonic() - since.at
            self._resting, self._factor, self._seen = [*since.cards], since.factor, since.at

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Let time pass until cancelled. Raises UsageError if the trace can't be used."""
        await self._read_trace()
        self._seen = min(self._seen, time.monotonic())
        self._catch_up()
        self._state.before_look = self.look
        try:
            task_status.started()
            while True:
                await self._wait()
                self._catch_up()
        finally:
            self._seen, self._state.before_look = inf, None

    async def _wait(self) -> None:
        """Wait for a second; at rest, for as long as nothing changes."""
        if self._resting is None:
            await anyio.sleep(_SECONDS)
        else:
            await first_of(*(change.wait for change in self._changes))

    def look(self) -> None:
        """Bring readings up to date that stand still, or still count containers that have gone.

        All who look in a second agree, unless containers come or go.
        """
        is_old = time.monotonic() - self._seen >= _SECONDS
        stands_still = self._resting is not None and (is_old or not self._changes)
        if stands_still or any(change.is_set() for change in self._usage_changes):
            self._catch_up()

    def _catch_up(self) -> None:
        now = time.monotonic()
        passed, self._seen = now - self._seen, now
        self.advance(passed)

    def advance(self, seconds: float) -> None:
        """Let so much real time pass: make loads and readings anew, and tell."""
        was_at_rest = self._resting is not None
        if self._resting is not None:
            # Until now; what has changed begins now.
            self._rest(self._resting, seconds * self._factor)
            seconds = 0.0
        is_told = self._plan_if_needed(seconds)
        self._damage.note()
        self._factor = self._settings().time_factor
        passing = seconds * self._factor
        steps = min(_MOST_STEPS, max(1, ceil(passing / _LONGEST_STEP)))
        for number in range(1, steps):
            moment = self.time + passing * number / steps
            for card in self._present:
                self._step(card, self._work(card, moment), passing / steps)
        self.time += passing
        self._show(passing / steps)
        self._resting = None if any(self._jobs.values()) else self._present
        if is_told or not was_at_rest:
            self._state.load_changes.send()

    def _rest(self, cards: Sequence[Card], passing: float) -> None:
        """Let time pass on cards that nobody held: their power was constant, so a step is exact."""
        for card in cards:
            self._step(card, Work(), passing)
        self.time += passing

    def set_rule(self, word: str, text: str, uuids: frozenset[str] = frozenset()) -> None:
        """Set a load over all else. Raises UsageError if there are too many, or it is wrong."""
        self.look()
        rules = self._chooser.rules
        shape = read(text, "load")
        if word not in rules and len(rules) >= _MOST_RULES:
            raise UsageError(f"load: {_MOST_RULES} targets have one already: clear some first")
        rules.pop(word, None)
        rules[word] = Rule(word, shape, self.time, uuids)
        self._replan()

    def clear_rules(self, words: Sequence[str] = ()) -> list[str]:
        """Take back what was set for targets, or all of it; return for which there was something.

        Raises UsageError for a word that has no load.
        """
        rules = self._chooser.rules
        if unknown := [word for word in words if word not in rules]:
            has = ", ".join(rules) or "none"
            raise UsageError(
                f"load: nothing is set for {word!r}: it is for {has}" for word in unknown
            )
        cleared = list(words or rules)
        for word in dict.fromkeys(cleared):
            del rules[word]
        self._replan()
        return cleared

    def _replan(self) -> None:
        """Show at once what has changed, not a second later."""
        self._planned = -_PLAN_SECONDS
        self.advance(0.0)

    def status(self) -> dict[str, Any]:
        """Return what `ctl status -o json` shows."""
        self.look()
        settings = self._settings()
        return {
            "default": settings.load,
            "trace": list(settings.load_trace or ()),
            "time": round(self.time, 3),
            "time_factor": settings.time_factor,
            "set": listed([*self._chooser.rules.values()]),
        }

    @property
    def _present(self) -> list[Card]:
        return [card for card in self._state.node.cards if card.uuid not in self._state.lost]

    async def _read_trace(self) -> None:
        files = self._settings().load_trace
        if files and self._chooser.trace is None:
            from hami_mock.sources import load_traces  # few agents have one

            self._chooser.trace = await anyio.to_thread.run_sync(load_traces.read, files)

    def _plan_if_needed(self, seconds: float) -> bool:
        """Choose loads anew if it is time to; return whether something told of a change."""
        self._planned -= seconds
        is_told = not self._changes or any(change.is_set() for change in self._changes)
        if self._planned > 0 and not is_told:
            return False
        self._planned = _PLAN_SECONDS
        state = self._state
        self._usage_changes = state.holders.changes.next(), state.pod_changes.next()
        others = state.changes.next(), self._settings_changes.next()
        self._changes = *self._usage_changes, *others
        self._plan()
        return is_told

    def _plan(self) -> None:
        state, default = self._state, self._settings().load
        used = state.usages
        on_cards = {card.uuid: used(card) for card in state.node.cards}
        held = Counter(usage.container for on_card in on_cards.values() for usage in on_card)
        begun: dict[tuple[Container, str], float] = {}
        self._jobs = {}
        for card in state.node.cards:
            jobs = self._jobs[card.uuid] = []
            for usage in on_cards[card.uuid]:
                pod = state.pods.get(usage.container[:2])
                who = usage.container, pod.uid if pod else ""
                begun[who] = self._begun.get(who) or begun.get(who) or self._begin(pod)
                is_linked = card.link is not None and held[usage.container] > 1
                of = Held(card, usage, pod, begun[who], is_linked)
                jobs.append(self._chooser.job(of, default))
        self._begun = begun
        self._chooser.forget_all_but(state.pods)

    def _begin(self, pod: Pod | None) -> float:
        """Return when a container began that is seen for the first time."""
        if pod is None or not pod.started:
            return self.time
        return self.time - max(0.0, self._clock() - pod.started)

    def _work(self, card: Card, moment: float) -> Work:
        """Return what the containers do together, without saying which one does what."""
        jobs = self._jobs.get(card.uuid, ())
        wanted = wishes(jobs, moment)
        busy = sum(wish.busy for wish in wanted)
        linked = sum(wish.busy for wish, job in zip(wanted, jobs, strict=True) if job.is_linked)
        return Work(min(100.0, busy), 0, len(wanted), linked * min(1.0, 100 / (busy or 1)))

    def _nature(self, card: Card) -> Traits:
        nature = traits(card.vendor.maker, card.model)
        limit = self._state.power_limits.get(card.uuid)
        return nature if limit is None else nature._replace(power_limit=limit)

    def _step(self, card: Card, work: Work, seconds: float) -> Inner:
        inner = self._inner.get(card.uuid, Inner())
        trouble = self._damage.of(card.uuid).trouble
        inner = step(self._nature(card), inner, work, trouble, seconds)
        self._inner[card.uuid] = inner
        return inner

    def _show(self, seconds: float) -> None:
        """Do the last step with whole numbers, which all who look will agree on."""
        loads: dict[tuple[str, Container], Load] = {}
        readings: dict[str, Reading] = {}
        for card in self._present:
            nature = self._nature(card)
            condition = self._damage.of(card.uuid)
            is_stopped, room = condition.trouble.stopped, capacity(nature, card.memory)
            jobs = self._jobs.get(card.uuid, ())
            work, own = work_of(jobs, self.time, room, is_stopped=is_stopped)
            for job, load in zip(jobs, own, strict=True):
                loads[card.uuid, job.container] = load
            inner = self._step(card, work, seconds)
            readings[card.uuid] = reading(nature, card.memory, inner, work, condition)
        self._inner = {u: inner for u, inner in self._inner.items() if u in self._state.cards}
        self._state.loads, self._state.readings = loads, readings
