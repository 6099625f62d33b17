"""What is to be looked at, and when."""

import anyio

from hami_mock.fleet.agenda import Agenda


async def taken(agenda: Agenda, count: int) -> list[str]:
    with anyio.fail_after(5):
        return [await agenda.next() for _ in range(count)]


def test_names_come_in_the_order_of_their_times_and_each_once() -> None:
    async def scenario() -> None:
        now = 0.0
        agenda = Agenda(lambda: now)
        for name, after in (("a", 9), ("b", 2), ("c", 3), ("b", 2), ("a", 1), ("c", 8)):
            agenda.add(name, after)
        assert len(agenda) == 3
        now = 10.0
        assert await taken(agenda, 3) == ["a", "b", "c"]
        assert len(agenda) == 0

    anyio.run(scenario)


def test_who_waits_is_woken_by_what_is_due_earlier() -> None:
    async def scenario() -> None:
        agenda = Agenda()
        agenda.add("late", 3600)
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                assert await taken(agenda, 1) == ["now"]

            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            agenda.add("now")
        assert len(agenda) == 1

    anyio.run(scenario)


def test_many_who_wait_get_one_name_each() -> None:
    async def scenario() -> None:
        agenda, got = Agenda(), []

        async def wait() -> None:
            got.append(await agenda.next())

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                for name in "abcd":
                    agenda.add(name, 0.01)
        assert sorted(got) == ["a", "b", "c", "d"]

    anyio.run(scenario)
