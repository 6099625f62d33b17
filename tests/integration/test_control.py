"""What `hami-mock ctl` does to an agent, over a real socket."""

import json
from pathlib import Path

import anyio
import pytest

from hami_mock.control.protocol import Request
from hami_mock.errors import StartError, UsageError
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import EventLog
from hami_mock.node.fault import Call, FaultKind
from hami_mock.node.fault_kinds import BROKEN, DEGRADED, DOWN, HUNG, LOST, REFUSED, SLOW, UNHEALTHY
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from tests.integration.control_rig import FOLLOW, Raw, Served

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def served(socket_folder: Path) -> Served:
    return Served(socket_folder / "run" / "control.sock")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "effects", "said"),
    [
        (
            "fail nvidia/0 --xid 79",
            {"nvidia/0": {UNHEALTHY}},
            "1 card now unhealthy: nvidia/0 (Xid 79 (GPU has fallen off the bus))",
        ),
        (
            "fail --xid 48",
            {"nvidia/0": {UNHEALTHY}, "nvidia/1": {UNHEALTHY}},
            "2 cards now unhealthy: nvidia/0, nvidia/1 (Xid 48 (double bit ECC error))",
        ),
        ("fail mlu/?", {"mlu/0": {UNHEALTHY}, "mlu/1": {UNHEALTHY}}, "2 cards now"),
        (
            "fail nvidia/0 --xid 31",
            {},
            "Xid 31 (GPU memory page fault) counted; cards stay healthy: nvidia/0",
        ),
        ("lose nvidia/1", {"nvidia/1": {LOST}}, "1 card now lost: nvidia/1"),
        (
            "degrade nvidia/0 --reason thermal",
            {"nvidia/0": {DEGRADED}},
            "1 card now degraded: nvidia/0 (thermal)",
        ),
        (
            "down mlu",
            {"cambricon.com/vmlu": {DOWN}},
            "1 resource now down: cambricon.com/vmlu",
        ),
        ("refuse mlu", {"cambricon.com/vmlu": {REFUSED}}, "1 resource now refused: "),
        (
            "delay allocate 2s mlu",
            {"cambricon.com/vmlu": {SLOW}},
            "1 resource now with allocate slow for 2 s: cambricon.com/vmlu",
        ),
        (
            "hang prestart 1m30s mlu",
            {"cambricon.com/vmlu": {HUNG}},
            "1 resource now with prestart hung for 90 s: ",
        ),
        (
            "break allocate mlu --reason x",
            {"cambricon.com/vmlu": {BROKEN}},
            "1 resource now with allocate broken: cambricon.com/vmlu (x)",
        ),
        ("recover nvidia/0", {}, "nothing to recover: nvidia/0"),
        ("drop mlu", {}, "list streams dropped: cambricon.com/vmlu"),
        ("clear", {}, "nothing to clear: nvidia/0, nvidia/1, mlu/0, mlu/1, "),
    ],
)
async def test_a_verb_does_what_it_says(
    served: Served, capsys: Captured, line: str, effects: dict[str, set[FaultKind]], said: str
) -> None:
    async with served.run():
        words = line.split()
        await served.ctl(*words)
    assert served.effects() == effects
    assert said in capsys.readouterr().out


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("fail nvidia/0", "recover nvidia"),
        ("degrade nvidia/0", "recover all"),
        ("lose nvidia/0", "return nvidia/0"),
        ("down nvidia", "up nvidia"),
        ("refuse nvidia", "up all"),
        ("delay allocate 1s", "clear"),
        ("fail all", "clear all"),
    ],
)
async def test_a_verb_mends_what_another_broke(
    served: Served, capsys: Captured, begin: str, end: str
) -> None:
    async with served.run():
        await served.ctl(*begin.split())
        assert served.effects()
        await served.ctl(*end.split())
    assert served.effects() == {}
    assert "no longer" in capsys.readouterr().out


@pytest.mark.anyio
async def test_a_card_with_two_faults_recovers_as_one_card(
    served: Served, capsys: Captured
) -> None:
    async with served.run():
        for reason in ("hot", "hot", "old"):
            await served.ctl("fail", "nvidia/0", "--reason", reason)
        await served.ctl("fail", "nvidia/1")
        capsys.readouterr()
        await served.ctl("recover", "all")
    assert capsys.readouterr().out == (
        "2 cards no longer unhealthy: nvidia/0, nvidia/1 (hot; old)\n"
    )


@pytest.mark.anyio
async def test_the_answer_says_what_was_done_for_programs_too(
    served: Served, capsys: Captured
) -> None:
    async with served.run():
        uuid = served.state.node.cards[0].uuid
        await served.ctl("fail", uuid, "nvidia/1", "--reason", "hot", "-o", "json")
        begun = json.loads(capsys.readouterr().out)
        await served.ctl("recover", "nvidia/1", "-o", "json")
        ended = json.loads(capsys.readouterr().out)
        delayed = await served.ask("delay", targets=["mlu"], call="allocate", seconds=2)
    fault = {"effect": "unhealthy", "reason": "hot", "call": None, "seconds": None}
    assert begun == {
        "summary": ["2 cards now unhealthy: nvidia/0, nvidia/1 (hot)"],
        "touched": ["nvidia/0", "nvidia/1"],
        "begun": [fault | {"targets": ["nvidia/0"]}, fault | {"targets": ["nvidia/1"]}],
        "ended": [],
        "ends_after": None,
    }
    assert ended["begun"] == []
    assert ended["ended"] == [fault | {"targets": ["nvidia/1"]}]
    assert (delayed["begun"][0]["call"], delayed["begun"][0]["seconds"]) == (Call.ALLOCATE, 2)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "fail nvidia/7 mlu/x",
            "no card 'nvidia/7' on this node: it has nvidia/0, nvidia/1, ",
        ),
        ("fail nvidia/7 mlu/x", "no card 'mlu/x' on this node"),
        ("fail mlu/0 --xid 79", "only NVIDIA cards have Xids, not mlu/0: give a reason"),
        ("fail --xid 0", "argument --xid: '0' is not allowed: it must be a whole number from 1 to"),
        ("down nvidia/0", "no resource 'nvidia/0' on this node: it has nvidia.com/gpu,"),
        ("clear x", "no card or resource 'x' on this node"),
        ("fail all --for 30d", "argument --for: '30d' is not allowed: it must be a time"),
        ("delay allocate 0s", "argument DURATION: '0s' is not allowed"),
        ("events --since=-1", "'-1' is not allowed: it must be a time such as"),
        ("events -f --since=-1", "'-1' is not allowed: it must be a time such as"),
        ("set x=1", "one: wrong\ntwo: wrong"),
        ("scenario stop", "no scenario is running"),
    ],
)
async def test_what_is_not_there_is_named_and_nothing_is_done(
    served: Served, line: str, message: str
) -> None:
    async with served.run():
        with pytest.raises(UsageError) as caught:
            await served.ctl(*line.split())
    assert message in str(caught.value)
    assert served.effects() == {}
    assert served.state.events.after(0) == []


@pytest.mark.anyio
async def test_a_fault_ends_by_itself(served: Served, capsys: Captured) -> None:
    async with served.run():
        await served.ctl("fail", "nvidia/0", "--for", "20ms")
        failed, *rest = await served.state.events.wait_after(0)
        recovered = (rest or await served.state.events.wait_after(failed.number))[0]
        assert (failed.kind, recovered.kind) == (Kind.CARD_FAILED, Kind.CARD_RECOVERED)
    assert served.effects() == {}
    assert "it ends by itself after 20ms" in capsys.readouterr().out


@pytest.mark.anyio
async def test_only_the_fault_that_was_begun_ends_by_itself(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was ended by hand before, and another one came since; others of its kind stay."""
    time_is_up, asked = anyio.Event(), []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)
        await time_is_up.wait()

    monkeypatch.setattr("hami_mock.control.acting.sleep", sleep)
    async with served.run():
        await served.ask("down", targets=["nvidia", "mlu"], **{"for": 60})
        await served.ask("up", targets=["nvidia.com/gpu"])
        await served.ask("down", targets=["nvidia.com/gpu"])
        last = served.state.events.after(0)[-1].number
        time_is_up.set()
        await served.state.events.wait_after(last)
        assert served.effects() == {"nvidia.com/gpu": {DOWN}}
    assert asked == [60]


@pytest.mark.anyio
async def test_an_end_that_has_nothing_left_to_end_is_not_waited_for(served: Served) -> None:
    """Or a loop of `fail --for 7d` and `clear` would pile up waits for a week."""
    async with served.run():
        before = len(anyio.get_running_tasks())
        for _ in range(10):
            await served.ask("fail", targets=["nvidia/0"], **{"for": "7d"})
            assert len(anyio.get_running_tasks()) <= before + 4
            await served.ask("clear", targets=["all"])
        await served.ask("fail", targets=["nvidia/0"], **{"for": 0.01})
        await served.state.wait_until(lambda: not served.state.faults)


@pytest.mark.anyio
async def test_there_is_a_limit_to_ends_that_wait(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hami_mock.control.acting._MOST_WAITING", 2)
    async with served.run():
        for card in ("nvidia/0", "nvidia/1"):
            await served.ask("fail", targets=[card], **{"for": "1h"})
        with pytest.raises(UsageError, match="the faults of 2 requests are waiting to end already"):
            await served.ask("lose", targets=["nvidia/0"], **{"for": "1h"})
        assert len(served.state.faults) == 2
        await served.ask("recover", targets=["nvidia/0"])
        await served.ask("lose", targets=["nvidia/0"], **{"for": "1h"})


@pytest.mark.anyio
async def test_there_is_a_limit_to_faults(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hami_mock.faults.actions.MOST_FAULTS", 3)
    async with served.run():
        await served.ask("fail", targets=["nvidia"])
        with pytest.raises(UsageError, match="at most 3 faults may be active at once"):
            await served.ask("fail", targets=["nvidia"], xid=79)
        # All of it or nothing.
        assert len(served.state.faults) == 2
        assert not served.state.xids


@pytest.mark.anyio
async def test_an_ignored_xid_has_nothing_to_end(served: Served) -> None:
    async with served.run():
        answer = await served.ask("fail", targets=["nvidia/0"], xid=13, **{"for": 60})
    assert answer["ends_after"] is None
    assert len(answer["summary"]) == 1
    assert served.state.xids[served.state.node.cards[0].uuid, 13] == 1


@pytest.mark.anyio
async def test_many_names_are_cut_short_for_people(served: Served) -> None:
    served.state.change(configured_node(load({"mlu-cards": "20"}), None))
    async with served.run():
        answer = await served.ask("lose", targets=["mlu"])
    assert answer["summary"][0].endswith("mlu/10, mlu/11 and 8 more")
    assert len(answer["touched"]) == 20


@pytest.mark.anyio
async def test_status_shows_the_cards(served: Served, capsys: Captured) -> None:
    async with served.run():
        await served.ctl("fail", "nvidia/0", "--xid", "79")
        await served.ctl("degrade", "mlu/1", "--reason", "thermal")
        capsys.readouterr()
        await served.ctl("status")
        lines = capsys.readouterr().out.splitlines()
        await served.ctl("status", "-o", "json")
        data = json.loads(capsys.readouterr().out)
    assert "Node node-a" in lines[0]
    health = {line.split()[0]: line for line in lines if "/" in line.split("  ")[0]}
    assert health["nvidia/0"].endswith("79 x1  unhealthy: Xid 79 (GPU has fallen off the bus)")
    assert health["nvidia/1"].endswith("healthy")
    assert health["mlu/1"].endswith("healthy; degraded: thermal")
    assert data["cards"][0]["xids"] == {"79": 1}


@pytest.mark.anyio
async def test_options_are_set(served: Served, capsys: Captured) -> None:
    async with served.run():
        await served.ctl("set", "cards", "nvidia=4", "mlu=0")
        assert capsys.readouterr().out == "nvidia-cards: 4\nmlu-cards: 0\n"
        await served.ctl("set", "--reset")
        assert capsys.readouterr().out == "nothing changed\n"
    assert served.agent.noted == [({"nvidia-cards": "4", "mlu-cards": "0"}, False), ({}, True)]


@pytest.mark.anyio
async def test_a_scenario_is_played_and_stopped(
    served: Served, socket_folder: Path, capsys: Captured
) -> None:
    file = socket_folder / "drill.yaml"
    file.write_text("steps: []")
    async with served.run():
        await served.ctl("scenario", "status")
        await served.ctl("scenario", "play", str(file), "--seed", "7")
        await served.ctl("scenario", "status")
        await served.ctl("scenario", "stop")
        await served.ctl("scenario", "status")
    assert served.agent.noted == [("steps: []", "drill.yaml", 7)]
    playing = "scenario drill.yaml: seed 7, 0s\nnext: fail all\n"
    assert capsys.readouterr().out == (
        f"no scenario is running\n{playing}{playing}"
        + "scenario drill.yaml: seed 7, stopped after 0s\n" * 2
    )


@pytest.mark.anyio
async def test_an_error_that_nobody_foresaw_leaves_the_agent_alone(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    async with served.run():
        with pytest.raises(StartError, match=r"internal error.*the disk is on fire"):
            await served.ctl("reload")
        await served.ask("status")
    assert "Traceback" in caplog.text


@pytest.mark.anyio
async def test_events_after_a_number(served: Served, capsys: Captured) -> None:
    async with served.run():
        await served.ctl("fail", "nvidia/0")
        await served.ctl("recover", "nvidia/0")
        capsys.readouterr()
        await served.ctl("events", "--since", "1", "-o", "json")
        (line,) = capsys.readouterr().out.splitlines()
        await served.ctl("events")
    assert (
        json.loads(line).items()
        >= {
            "number": 2,
            "kind": "CardRecovered",
            "subject": "nvidia/0",
            "warning": False,
        }.items()
    )
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("command", ["events", "follow"])
async def test_events_from_a_time_on(served: Served, command: str) -> None:
    times = iter([1000.0, 2000.0, 2000.0, 3000.0])
    served.agent.state.events = EventLog(clock=lambda: next(times))
    async with served.run():
        await served.ask("fail", targets=["nvidia/0", "nvidia/1", "mlu/0", "mlu/1"])
        with Raw(served.path) as raw:
            await raw.send(Request(command, {"after": 2000.0, "since": 2}).line)
            found = (await raw.answer())["result"]
    assert (found if command == "follow" else found[0])["number"] == 3


@pytest.mark.anyio
async def test_a_watched_status_comes_again_after_each_change(served: Served) -> None:
    async with served.run():
        with Raw(served.path) as raw:
            await raw.send(Request("watch").line)
            first = (await raw.answer())["result"]
            await served.ask("fail", targets=["nvidia/0"])
            second = (await raw.answer())["result"]
    assert [card["health"] for card in first["cards"][:2]] == ["healthy", "healthy"]
    assert [card["health"] for card in second["cards"][:2]] == ["unhealthy", "healthy"]


@pytest.mark.anyio
async def test_a_scenario_that_plays_on_is_no_change_to_watch(served: Served) -> None:
    served.agent.scenario = {"name": "drill", "seed": 1, "elapsed": 0.0, "next": "fail all"}
    async with served.run():
        with Raw(served.path) as raw:
            await raw.send(Request("watch").line)
            await raw.answer()
            served.agent.scenario["elapsed"] = 5.0
            await served.ask("drop", targets=["nvidia.com/gpu"])
            served.agent.scenario["next"] = "clear all"
            second = (await raw.answer())["result"]
    assert second["scenario"]["next"] == "clear all"


@pytest.mark.anyio
async def test_two_clients_follow_the_events(served: Served) -> None:
    async with served.run():
        await served.ask("fail", targets=["nvidia/0"])
        with Raw(served.path) as one, Raw(served.path) as two:
            await one.send(FOLLOW)
            await two.send(FOLLOW)
            first = [(await raw.answer())["result"]["kind"] for raw in (one, two)]
            await served.ask("recover", targets=["nvidia/0"])
            second = [(await raw.answer())["result"]["kind"] for raw in (one, two)]
    assert first == ["CardFailed"] * 2
    assert second == ["CardRecovered"] * 2


@pytest.mark.anyio
async def test_following_ends_with_an_error_when_the_agent_goes(
    served: Served, capsys: Captured
) -> None:
    caught: list[StartError] = []

    async def follow() -> None:
        try:
            await served.ctl("events", "-f", "-o", "json")
        except StartError as error:
            caught.append(error)

    async with anyio.create_task_group() as tasks, served.run():
        tasks.start_soon(follow)
        await served.ask("lose", targets=["nvidia/0"])
        out = ""
        # The client's own thread prints it.
        while "CardLost" not in out:
            await anyio.sleep(0.01)
            out += capsys.readouterr().out
    assert json.loads(out)["subject"] == "nvidia/0"
    assert "closed the connection" in str(caught[0])
