"""Parts that fail alone, and come back."""

import logging
from collections.abc import Callable

import anyio
import pytest
from anyio.abc import TaskStatus

from hami_mock.errors import ClusterError, StartError, UsageError
from hami_mock.kit import supervision
from hami_mock.kit.concurrency import Backoff
from hami_mock.kit.supervision import Supervisor, reason_of


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "_STEADY_SECONDS", 0.05)
    monkeypatch.setattr(supervision, "Backoff", lambda: Backoff(first=0.001, longest=0.01))


class Part:
    """Raises what it is told to raise, one after the other; then it runs."""

    def __init__(self, *errors: Exception, before: bool = False) -> None:
        self._errors = list(errors)
        self._before = before
        self.runs = 0

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        self.runs += 1
        if not self._before or not self._errors:
            task_status.started()
        if self._errors:
            raise self._errors.pop(0)
        await anyio.sleep_forever()


async def watch(supervisor: Supervisor, part: Part, until: Callable[[], bool]) -> None:
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run, "it", part.run)
        with anyio.fail_after(10):
            await supervisor.changes.wait_until(until)
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
@pytest.mark.parametrize("before", [True, False])
async def test_a_part_that_fails_is_started_again_and_works_again(
    before: bool, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = Supervisor()
    part = Part(KeyError("x"), KeyError("x"), ClusterError("no API server"), before=before)
    reasons: list[str] = []

    def has_recovered() -> bool:
        reasons.extend(supervisor.failures.values())
        return part.runs == 4 and not supervisor.failures

    with caplog.at_level(logging.INFO):
        await watch(supervisor, part, has_recovered)
    assert list(dict.fromkeys(reasons)) == ["KeyError: 'x'", "no API server"]
    assert supervisor.counts == {"it": 3}
    assert [record.getMessage() for record in caplog.records] == [
        "it: failed and is restarted: KeyError: 'x'",
        "it: failed and is restarted: no API server",
        "it: works again",
    ]


@pytest.mark.anyio
async def test_the_traceback_is_for_those_who_debug(caplog: pytest.LogCaptureFixture) -> None:
    supervisor = Supervisor()
    with caplog.at_level(logging.DEBUG):
        await watch(supervisor, Part(KeyError("x")), lambda: bool(supervisor.failures))
    with_traceback = [record for record in caplog.records if record.exc_info]
    assert [record.levelname for record in with_traceback] == ["DEBUG"]


@pytest.mark.anyio
@pytest.mark.parametrize("error", [StartError("taken"), UsageError("wrong")])
async def test_a_start_that_can_not_be_is_not_tried_again(error: Exception) -> None:
    supervisor, part = Supervisor(), Part(error, before=True)
    with pytest.raises(ExceptionGroup) as caught:
        await watch(supervisor, part, lambda: True)
    assert caught.group_contains(type(error))
    assert part.runs == 1


@pytest.mark.anyio
async def test_the_same_error_later_is_a_failure_like_any_other() -> None:
    supervisor, part = Supervisor(), Part(StartError("taken"))
    await watch(supervisor, part, lambda: part.runs == 2 and not supervisor.failures)
    assert supervisor.counts == {"it": 1}


@pytest.mark.anyio
async def test_a_part_with_nothing_to_do_is_done_and_no_failure() -> None:
    async def nothing(*, task_status: TaskStatus[None]) -> None:
        return

    supervisor = Supervisor()
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run, "it", nothing)
    assert supervisor.failures == {}
    assert supervisor.counts == {"it": 0}


@pytest.mark.anyio
async def test_one_part_fails_for_ever_and_the_other_runs() -> None:
    supervisor, bad, good = Supervisor(), Part(*[ValueError("no")] * 1000), Part()
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run, "bad", bad.run)
        await tasks.start(supervisor.run, "good", good.run)
        with anyio.fail_after(10):
            await supervisor.changes.wait_until(lambda: bad.runs > 20)
        assert supervisor.failures == {"bad": "ValueError: no"}
        tasks.cancel_scope.cancel()
    assert good.runs == 1


def test_a_reason_is_one_short_line_from_the_depth_of_a_group() -> None:
    deep = ExceptionGroup("", [ExceptionGroup("", [StartError("a\nb" + "x" * 1000)])])
    reason = reason_of(deep)
    assert reason.startswith("a\\nbxxx")
    assert len(reason) < 400
    assert reason_of(OSError()) == "OSError: "
