"""Parts that run side by side, and fail alone.

What a part raises is the reason why it is started again a little later; the others go on.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskStatus

from hami_mock.errors import HamiMockError, StartError, UsageError
from hami_mock.kit.broadcast import Broadcast
from hami_mock.kit.concurrency import Backoff, innermost
from hami_mock.kit.text import cut

_STEADY_SECONDS = 5.0
"""A part that has run for this long works again."""

_log = logging.getLogger(__name__)

Run = Callable[..., Awaitable[None]]
"""`async def run(*, task_status)`"""


class Supervisor:
    """Runs parts by name, and knows which of them fail."""

    def __init__(self) -> None:
        self.failures: dict[str, str] = {}
        """Part → why it doesn't work now."""
        self.counts: Counter[str] = Counter()
        """Part → how often it has failed."""
        self.changes = Broadcast()
        self._backoffs: dict[str, Backoff] = {}

    async def run(
        self, name: str, run: Run, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Run a part, again and again if it fails, until it returns or is cancelled.

        Raises StartError or UsageError if it raises one before it has started for the first time:
        then there is no use in trying.
        """
        self.counts[name] += 0
        self._backoffs[name] = Backoff()
        status = _OnceStarted(task_status)
        while True:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._praise, name)
                failure = await _outcome(run, status)
                tasks.cancel_scope.cancel()
            if failure is None:
                self._works(name)
                status.started()
                return
            self._note(name, failure)
            status.started()
            await anyio.sleep(self._backoffs[name].next())

    async def _praise(self, name: str) -> None:
        await anyio.sleep(_STEADY_SECONDS)
        self._works(name)

    def _works(self, name: str) -> None:
        self._backoffs[name].reset()
        if self.failures.pop(name, None) is not None:
            _log.info("%s: works again", name)
            self.changes.send()

    def _note(self, name: str, failure: Exception) -> None:
        reason = reason_of(failure)
        self.counts[name] += 1
        if self.failures.get(name) != reason:
            # Once per reason, not once per try.
            _log.warning("%s: failed and is restarted: %s", name, reason)
            _log.debug("%s: failed", name, exc_info=failure)
        self.failures[name] = reason
        self.changes.send()


async def _outcome(run: Run, status: "_OnceStarted") -> Exception | None:
    try:
        await run(task_status=status)
    except (StartError, UsageError) as error:
        if not status.is_started:
            raise
        return error
    except Exception as error:
        return error
    return None


class _OnceStarted(TaskStatus[None]):
    """Passes the first start on; a part that failed starts more than once."""

    def __init__(self, task_status: TaskStatus[None]) -> None:
        self._task_status = task_status
        self.is_started = False

    def started(self, value: None = None) -> None:
        if not self.is_started:
            self.is_started = True
            self._task_status.started()


def reason_of(error: BaseException) -> str:
    """Return what went wrong, in a line; of a group, what went wrong first."""
    error = innermost(error)
    is_plain = isinstance(error, HamiMockError | OSError) and str(error)
    return cut(str(error) if is_plain else f"{type(error).__name__}: {error}")
