import json
from typing import Any

import pytest

from hami_mock.control.status import status
from hami_mock.faults.actions import Action, perform
from hami_mock.kubelet.holder import Holder
from hami_mock.node.fault import Call
from hami_mock.node.holders import Load
from hami_mock.node.sizing import Past
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin.directory import SocketDirectory
from hami_mock.views.deviceplugin.lifecycle import Phase
from hami_mock.views.deviceplugin.plugins import Plugins
from tests.unit.builders import NODE, laid_out, resource_named

GPU, GPUMEM = "nvidia.com/gpu", "nvidia.com/gpumem"
IDLE = {"busy": 0, "memory": 0}
SMALL = {"nvidia_memory": 10, "mlu_cards": 0, "iluvatar_cards": 0, "ascend_cards": 0}


@pytest.fixture
def state() -> NodeState:
    return NodeState(laid_out(None, **SMALL))


def plugins_of(state: NodeState) -> Plugins:
    return Plugins(state, SocketDirectory("/nowhere"))


def told(state: NodeState, holders: list[Holder] | None = None) -> dict[str, Any]:
    state.holders.name(holders)
    return status(state, plugins_of(state).all)


def test_what_waits_to_move_says_so(state: NodeState) -> None:
    small = {name.replace("_", "-"): str(value) for name, value in SMALL.items()}
    past = Past({r.name: r.devices for r in state.node.resources}, (), {GPUMEM})
    settings = load({"node-name": NODE, "units": "status", **small})
    state.change(configured_node(settings, None, past))
    rows = by_name(told(state)["resources"])
    assert {name: row["waits_to_move"] for name, row in rows.items()} == {GPU: False, GPUMEM: True}
    assert rows[GPUMEM]["way"] == "plugin"


def by_name(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in items}


def do(state: NodeState, verb: str, *targets: str, **parameters: Any) -> None:
    perform(Action(verb, targets, parameters), state)


def shrink(state: NodeState) -> None:
    flags = {name.replace("_", "-"): str(value) for name, value in SMALL.items()}
    settings = load({"node-name": NODE, **flags, "nvidia-cards": "1", "nvidia-memory": "7"})
    past = Past({r.name: r.devices for r in state.node.resources})
    state.change(configured_node(settings, None, past))


def test_a_node_that_is_well(state: NodeState) -> None:
    found = told(state)
    assert found["node"] == NODE
    assert found["holders_known"] is False
    assert [card["name"] for card in found["cards"]] == ["nvidia/0", "nvidia/1"]
    assert by_name(found["resources"])[GPU] == {
        "name": GPU,
        "unit": "slot",
        "way": "plugin",
        "why": "",
        "waits_to_move": False,
        "phase": Phase.WAITING,
        "reason": "not tried yet",
        "count": 20,
        "healthy": 20,
        "unhealthy": 0,
        "lost": 0,
        "retired": 0,
        "held": None,
        "faults": [],
    }
    card = found["cards"][0]
    assert (card["health"], card["degraded"], card["reasons"], card["xids"], card["holders"]) == (
        "healthy",
        False,
        [],
        {},
        [],
    )


@pytest.mark.parametrize(("phase", "ready"), [(Phase.WATCHED, True), (Phase.REGISTERED, False)])
def test_it_is_ready_when_every_resource_is_watched(
    state: NodeState, phase: Phase, ready: bool
) -> None:
    plugins = plugins_of(state).all
    for plugin in plugins:
        plugin.phase = Phase.WATCHED
    plugins[0].phase = phase
    assert status(state, plugins)["ready"] is ready


def test_devices_are_counted_by_what_became_of_their_cards(state: NodeState) -> None:
    do(state, "fail", "nvidia/0")
    assert state.device_health(resource_named(state.node, GPUMEM)) == {
        "healthy": 10,
        "unhealthy": 10,
        "lost": 0,
        "retired": 0,
    }
    # A card that is both is lost: the kubelet doesn't see it at all.
    do(state, "lose", "nvidia/0")
    assert state.device_health(resource_named(state.node, GPUMEM)) == {
        "healthy": 10,
        "unhealthy": 0,
        "lost": 10,
        "retired": 0,
    }


def test_retired_devices_are_counted_apart(state: NodeState) -> None:
    shrink(state)
    do(state, "fail", "nvidia/0")
    assert state.device_health(resource_named(state.node, GPUMEM)) == {
        "healthy": 0,
        "unhealthy": 7,
        "lost": 0,
        "retired": 13,
    }


def test_cards_say_what_is_wrong_with_them(state: NodeState) -> None:
    do(state, "fail", "nvidia/0", xid=79)
    do(state, "fail", "nvidia/0", xid=13)
    do(state, "degrade", "nvidia/0", reason="a slow link")
    do(state, "lose", "nvidia/1")
    first, second = told(state)["cards"]
    assert (first["health"], first["degraded"]) == ("unhealthy", True)
    assert first["reasons"] == [
        "unhealthy: Xid 79 (GPU has fallen off the bus)",
        "degraded: a slow link",
    ]
    assert first["xids"] == {"79": 1, "13": 1}
    assert (second["health"], second["degraded"], second["xids"]) == ("lost", False, {})


def test_resources_say_what_is_wrong_with_them(state: NodeState) -> None:
    do(state, "delay", GPU, call=Call.ALLOCATE, seconds=2.0)
    do(state, "down", GPU, reason="a test")
    resources = by_name(told(state)["resources"])
    assert resources[GPU]["faults"] == ["allocate slow for 2 s", "down: a test"]
    assert resources[GPUMEM]["faults"] == []


def holding(pod: str, devices: dict[str, int], memory: int = 10) -> dict[str, Any]:
    return {
        "namespace": "default",
        "pod": pod,
        "container": "main",
        "devices": devices,
        "memory": memory,
        "cores": 100,
        "slots": 1,
        "instances": [],
        "load": IDLE,
    }


def test_who_holds_what_is_told_card_by_card(state: NodeState) -> None:
    first, second = state.node.cards
    memory = resource_named(state.node, GPUMEM).devices
    on_first, on_second = (list(memory.ids(card)) for card in (first, second))
    holders = [
        Holder(
            ("default", "a", "main"),
            {GPU: [f"{first.uuid}-0", f"{second.uuid}-0"], GPUMEM: [*on_first[:3], on_second[0]]},
        ),
        Holder(("default", "b", "main"), {GPU: [f"{first.uuid}-1"], "other.com/x": ["1", "2"]}),
        Holder(("default", "c", "main"), {GPU: ["GPU-gone-0"]}),
    ]
    found = told(state, holders)
    assert found["holders_known"] is True
    assert found["cards"][0]["holders"] == [
        holding("a", {GPU: 1, GPUMEM: 4}, memory=4),
        holding("b", {GPU: 1}),
    ]
    assert found["cards"][1]["holders"] == [holding("a", {GPU: 1, GPUMEM: 4}, memory=4)]
    held = {name: resource["held"] for name, resource in by_name(found["resources"]).items()}
    assert (held[GPU], held[GPUMEM], held["nvidia.com/gpucores"]) == (4, 4, 0)


def test_what_was_given_a_moment_ago_is_held_by_somebody_without_a_name(state: NodeState) -> None:
    first, _ = state.node.cards
    state.holders.give(GPU, [f"{first.uuid}-0"])
    (held,) = told(state, [])["cards"][0]["holders"]
    assert (held["pod"], held["container"], held["devices"]) == (None, None, {GPU: 1})


def test_a_card_has_a_place_a_label_and_a_load(state: NodeState) -> None:
    first, second = state.node.cards
    state.holders.name([Holder(("default", "a", "main"), {GPU: [f"{second.uuid}-0"]})])
    state.loads[second.uuid, ("default", "a", "main")] = Load(busy=30, memory=4)
    idle, busy = status(state, [])["cards"]
    assert (idle["pci_bus_id"], idle["serial"], idle["minor"], idle["load"]) == (
        first.pci_bus_id,
        first.serial,
        0,
        IDLE,
    )
    assert busy["load"] == busy["holders"][0]["load"] == {"busy": 30, "memory": 4}


def test_nobody_holds_anything_is_not_nobody_knows(state: NodeState) -> None:
    found = told(state, [])
    assert found["holders_known"] is True
    assert {resource["held"] for resource in found["resources"]} == {0}


def test_the_status_can_be_written_as_json(state: NodeState) -> None:

    do(state, "fail", "nvidia/0", xid=79)
    assert json.loads(json.dumps(told(state, [])))["node"] == NODE
