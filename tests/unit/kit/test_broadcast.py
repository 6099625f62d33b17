import anyio
import pytest

from hami_mock.kit.broadcast import Broadcast

pytestmark = pytest.mark.anyio


async def test_everybody_who_waits_is_woken_once() -> None:
    news = Broadcast()
    first, second = news.next(), news.next()
    news.send()
    with anyio.fail_after(1):
        await first.wait()
        await second.wait()
    assert not news.next().is_set()


async def test_a_condition_is_checked_before_waiting_and_after_each_word() -> None:
    news, found = Broadcast(), [0]
    with anyio.fail_after(1):
        await news.wait_until(lambda: True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(news.wait_until, lambda: found[0] == 2)
            for _ in range(2):
                await anyio.lowlevel.checkpoint()
                found[0] += 1
                news.send()
