import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.agent import Agent
from hami_mock.faults.actions import Action, perform
from hami_mock.kit.text import LONGEST
from hami_mock.kubelet.holder import Container
from hami_mock.node.event_kinds import Kind
from hami_mock.node.readings import Throttle
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin.lifecycle import Phase
from hami_mock.views.page.snapshot import hue, snapshot
from tests.invented import WORK, invent
from tests.unit.builders import NODE


@pytest.fixture
def agent(socket_folder: Path) -> Agent:
    settings = load({"socket-dir": str(socket_folder), "node-name": NODE})
    return Agent(settings, configured_node(settings, None))


def test_an_idle_node_shows_all_that_it_has(agent: Agent) -> None:
    shown = snapshot(agent)
    assert shown["node"] == NODE
    assert [*shown["cards"]] == [card.name for card in agent.node.cards]
    assert [*shown["resources"]] == [resource.name for resource in agent.node.resources]
    card = shown["cards"]["nvidia/0"]
    assert (card["health"], card["degraded"], card["reasons"]) == ("healthy", False, [])
    assert (card["busy"], card["memory_used"], card["memory"]) == (0, 0, 32768)
    # There is no reading yet.
    assert (card["temperature"], card["power"], card["containers"]) == (None, None, {})
    assert shown["scenario"] is None
    assert shown["events"] == {}


def test_a_busy_card_shows_its_reading_and_who_makes_it_busy(agent: Agent) -> None:
    invent(agent.state)
    card = next(card for card in agent.node.cards if card.name == "nvidia/1")
    reading = agent.state.readings[card.uuid]
    agent.state.readings[card.uuid] = replace(
        reading, busy=81.26, power=253.04, throttles=frozenset({Throttle.POWER_CAP})
    )
    shown = snapshot(agent)["cards"]["nvidia/1"]
    assert (shown["busy"], shown["power"]) == (81.3, 253.0)
    assert shown["memory_used"] == reading.memory_used == 14_336 + 9_216
    assert shown["throttles"] == ["power_cap"]
    assert [*shown["containers"]] == ["/".join(who) for who, on in WORK.items() if "nvidia/1" in on]
    for who, usage in shown["containers"].items():
        assert who == f"{usage['namespace']}/{usage['pod']}/{usage['container']}"
    total = sum(usage["memory"] for usage in shown["containers"].values())
    assert total == shown["memory_used"]


def test_the_containers_of_a_pod_have_one_colour_on_all_cards(agent: Agent) -> None:
    invent(agent.state)
    colours: dict[str, set[int]] = {}
    for card in snapshot(agent)["cards"].values():
        for usage in card["containers"].values():
            colours.setdefault(usage["pod"], set()).add(usage["hue"])
    assert {pod: len(found) for pod, found in colours.items()} == dict.fromkeys(colours, 1)
    assert len(set.union(*colours.values())) == len(colours) == 3
    assert hue("ml", "train-resnet-0") == 99
    assert 0 <= hue("é", "x" * 300) < 360


def test_what_is_wrong_is_shown(agent: Agent) -> None:
    perform(Action("fail", ("nvidia/0",), {"xid": 79}), agent.state)
    perform(Action("down", ("nvidia.com/gpu",)), agent.state)
    shown = snapshot(agent)
    card = shown["cards"]["nvidia/0"]
    assert card["health"] == "unhealthy"
    assert card["reasons"] == ["unhealthy: Xid 79 (GPU has fallen off the bus)"]
    resource = shown["resources"]["nvidia.com/gpu"]
    assert (resource["count"], resource["healthy"], resource["unhealthy"]) == (20, 10, 10)
    assert len(resource["faults"]) == 1
    kinds = [(event["kind"], event["warning"]) for event in shown["events"].values()]
    assert kinds == [(Kind.XID, True), (Kind.CARD_FAILED, True), (Kind.FAULT_BEGAN, True)]


def test_a_node_is_ready_when_all_is_watched_and_nothing_fails(agent: Agent) -> None:
    assert not snapshot(agent)["ready"]
    for plugin in agent.plugins:
        plugin.phase = Phase.WATCHED
    assert snapshot(agent)["ready"]
    agent.supervisor.failures["holders"] = "OSError: no space"
    shown = snapshot(agent)
    assert not shown["ready"]
    assert shown["problems"] == ["holders: OSError: no space"]


def test_only_the_newest_events_are_shown(agent: Agent) -> None:
    for number in range(70):
        agent.state.events.add(Kind.XID, "nvidia/0", f"number {number}")
    shown = snapshot(agent)["events"]
    assert [*shown] == [str(number) for number in range(21, 71)]


def test_who_holds_what_may_not_be_known(agent: Agent) -> None:
    shown = snapshot(agent)
    assert not shown["holders_known"]
    assert shown["resources"]["nvidia.com/gpu"]["held"] is None
    invent(agent.state)
    shown = snapshot(agent)
    assert shown["holders_known"]
    assert shown["resources"]["nvidia.com/gpu"]["held"] == 4


def texts(data: Any) -> list[str]:
    match data:
        case str():
            return [data]
        case dict():
            return [text for pair in data.items() for each in pair for text in texts(each)]
        case list() | tuple():
            return [text for each in data for text in texts(each)]
    return []


def test_whatever_others_call_things_texts_are_short_and_printable(agent: Agent) -> None:
    odd: Container = ("n" * 5000, "<script>\n\ud800", "\x1b[31m" + "c" * 5000)
    invent(agent.state, work={odd: {"nvidia/0": (10, 100)}})
    shown = snapshot(agent)
    assert all(len(text) <= 3 * (LONGEST + 20) for text in texts(shown))
    assert all(text.isprintable() for text in texts(shown))
    json.dumps(shown).encode()
    (usage,) = shown["cards"]["nvidia/0"]["containers"].values()
    assert usage["pod"] == "<script>\\n\\ud800"


def test_the_agent_asks_the_kubelet_before_it_shows(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refresh() -> None:
        invent(agent.state)

    monkeypatch.setattr(agent.holders, "refresh_if_old", refresh)
    shown = anyio.run(agent.snapshot)
    assert shown["cards"]["nvidia/0"]["containers"]
