"""What a Node shows of a fleet's, and what is written where that isn't right."""

from copy import deepcopy
from typing import Any

import pytest

from hami_mock.fleet import names
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.nodes import node_object
from hami_mock.fleet.shown import Made, Ours, is_ready, patch
from tests.integration.fake_api_objects import merge
from tests.unit.fleet.rig import fleet_of

NOW = 1_000_000.0
ILUVATAR = "{name: ilu, nodes: 1, vendors: iluvatar, iluvatar: {cards: 2}}"
HANDSHAKE = "hami.io/node-handshake-MR-V100"


def made(fleet: Fleet, name: str = "a100-0", now: float = NOW) -> tuple[Made, Ours]:
    member = fleet.members[name]
    state = fleet.state(member)
    faults = fleet.annotation(member, state)
    ours = Ours.of(member.pool, fleet.name)
    wanted = ours.noted(node_object(member.pool, state, fleet.name, now, faults))
    return Made(member.pool, state, wanted), ours


def on_server(wanted: dict[str, Any]) -> dict[str, Any]:
    """Return a node as an API server gives it back."""
    node = deepcopy(wanted)
    node["metadata"]["labels"]["beta.kubernetes.io/os"] = "linux"
    node["status"]["capacity"]["ephemeral-storage"] = "1Ti"
    return node


def test_a_node_as_it_was_made_needs_nothing() -> None:
    whole, ours = made(fleet_of(options="hami: true\nvendors: nvidia\nlabels: all"))
    node = on_server(whole.wanted)
    assert patch(whole, ours, node, NOW) == {}
    assert ours.mark(node) == ours.mark(whole.wanted) != 0


def test_only_what_differs_is_written() -> None:
    whole, ours = made(fleet_of())
    node = on_server(whole.wanted)
    node["metadata"]["labels"][names.RACK] = "x"
    node["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    assert patch(whole, ours, node, NOW) == {
        "metadata": {"labels": {names.RACK: "a100-r0"}},
        "status": {"allocatable": {"nvidia.com/gpu": "20"}},
    }
    assert ours.mark(node) != ours.mark(whole.wanted)


def test_when_labels_were_written_is_no_matter() -> None:
    fleet = fleet_of(options="hami: true\nvendors: nvidia\nlabels: gfd")
    whole, ours = made(fleet)
    later, _ = made(fleet, now=NOW + 60)
    stamp = "nvidia.com/gfd.timestamp"
    assert whole.wanted["metadata"]["labels"][stamp] != later.wanted["metadata"]["labels"][stamp]
    assert ours.mark(whole.wanted) == ours.mark(later.wanted)
    del later.wanted["metadata"]["labels"][stamp]
    assert ours.mark(whole.wanted) != ours.mark(later.wanted)


def test_what_a_file_of_before_asked_for_is_taken_away() -> None:
    before = "{name: a100, nodes: 1, rack: r, labels: {x/y: z}, iluvatar: {cards: 2}}"
    fleet = fleet_of(before, options="hami: true\nvendors: [nvidia, iluvatar]\nlabels: gfd")
    node = on_server(made(fleet)[0].wanted)
    node["metadata"]["labels"]["others/label"] = node["metadata"]["annotations"]["others"] = "x"
    now = fleet_of("{name: a100, nodes: 1}", options="vendors: nvidia")
    whole, ours = made(now)
    found = patch(whole, ours, node, NOW)
    merge(node, found)
    assert node["metadata"]["labels"] == {
        **whole.wanted["metadata"]["labels"],
        "beta.kubernetes.io/os": "linux",
        "others/label": "x",
    }
    assert node["metadata"]["annotations"] == {
        **whole.wanted["metadata"]["annotations"],
        "others": "x",
    }
    allocatable = whole.wanted["status"]["allocatable"]
    assert node["status"]["allocatable"] == allocatable
    assert node["status"]["capacity"] == {**allocatable, "ephemeral-storage": "1Ti"}
    assert patch(whole, ours, node, NOW) == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"labels": 7}', '{"labels": [7]}', '{"resources": ["cpu"]}']
)
def test_a_note_that_somebody_wrote_takes_away_nothing_that_is_needed(text: str) -> None:
    whole, ours = made(fleet_of())
    node = on_server(whole.wanted)
    node["metadata"]["annotations"][names.MADE] = text
    assert patch(whole, ours, node, NOW) == {"metadata": {"annotations": {names.MADE: ours.note}}}


def test_an_amount_may_be_written_otherwise() -> None:
    whole, ours = made(fleet_of())
    node = on_server(whole.wanted)
    node["status"]["capacity"] |= {"cpu": "64000m", "memory": "512Gi"}
    assert patch(whole, ours, node, NOW) == {}


def test_labels_that_say_when_they_were_written_stay() -> None:
    whole, ours = made(fleet_of(options="vendors: nvidia\nlabels: gfd"))
    node = on_server(whole.wanted)
    key = "nvidia.com/gfd.timestamp"
    node["metadata"]["labels"][key] = "5"
    assert patch(whole, ours, node, NOW) == {}
    node["metadata"]["labels"][key] = "x"
    assert patch(whole, ours, node, NOW) == {"metadata": {"labels": {key: str(int(NOW))}}}


def test_without_the_node_all_that_is_ours_is_written() -> None:
    fleet = fleet_of(options="hami: true\nvendors: nvidia\nlabels: gfd")
    fleet.act("lose", fleet.find(["a100-0"]))
    whole, ours = made(fleet)
    found = patch(whole, ours, None, NOW)
    labels, notes = found["metadata"]["labels"], found["metadata"]["annotations"]
    assert labels[names.FLEET] == "test"
    assert labels["nvidia.com/gpu.count"] is None
    assert notes["hami.io/node-nvidia-register"] is None
    assert notes[names.KWOK_NODE] == "fake"
    assert '"lose"' in notes[names.FAULTS]
    assert found["status"]["capacity"]["nvidia.com/gpu"] == "0"
    assert found["status"]["capacity"]["cpu"] == "64"


def test_a_node_that_is_stopped_loses_its_keeper_and_its_conditions() -> None:
    fleet = fleet_of()
    fleet.act("stop-node", fleet.find(["a100-0"]))
    whole, ours = made(fleet)
    found = patch(whole, ours, None, NOW)
    assert found["metadata"]["annotations"][names.KWOK_NODE] is None
    ready = found["status"]["conditions"][0]
    assert (ready["type"], ready["status"]) == ("Ready", "Unknown")
    assert ready["lastTransitionTime"] == "1970-01-12T13:46:40Z"
    node = on_server(whole.wanted)
    assert patch(whole, ours, node, NOW) == {}
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert is_ready(node)
    assert [*patch(whole, ours, node, NOW)["status"]] == ["conditions"]


def test_a_change_of_cards_is_a_report_too() -> None:
    whole, ours = made(fleet_of(ILUVATAR), "ilu-0")
    assert whole.wanted["metadata"]["annotations"][HANDSHAKE].startswith("Reported")
    node = on_server(whole.wanted)
    node["metadata"]["annotations"][HANDSHAKE] = "Requesting_2026.01.01 00:00:00"
    assert patch(whole, ours, node, NOW) == {}
    fleet = fleet_of(ILUVATAR)
    fleet.act("fail", fleet.find(["ilu-0:0"]))
    ill, _ = made(fleet, "ilu-0")
    assert HANDSHAKE in patch(ill, ours, node, NOW)["metadata"]["annotations"]


@pytest.mark.parametrize("value", ["Deleted_2026.01.01 00:00:00"])
def test_an_old_scheduler_that_gave_up_is_answered(value: str) -> None:
    whole, ours = made(fleet_of(ILUVATAR), "ilu-0")
    node = on_server(whole.wanted)
    before = ours.mark(node)
    node["metadata"]["annotations"][HANDSHAKE] = value
    assert ours.mark(node) != before
    (answer,) = patch(whole, ours, node, NOW)["metadata"]["annotations"].values()
    assert answer.startswith("Reported")
