"""Text from outside that can't be printed, or has no end: no view and no log line breaks on it."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hami_mock.control.status import status
from hami_mock.kubelet import wire
from hami_mock.node.cards import Card
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import EventLog
from hami_mock.node.sizing import Share, size
from hami_mock.views.http.metrics import NodeCollector, render
from tests.unit.builders import laid_out
from tests.unit.sources.annotated.nodes import card, cards, derived, node
from tests.unit.views.http.test_metrics import make_agent

STRANGE = ["a\nINFO    forged", "a\x1b[2J", "a\ud800", "a\u2028b", "a\x00"]


@pytest.mark.parametrize("text", STRANGE)
def test_an_event_is_one_printable_line(text: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = EventLog()
    log.add(Kind.SCENARIO_STARTED, text, f"about {text}")
    (event,) = log.after(0)
    for shown in (event.subject, event.message, caplog.records[0].getMessage()):
        assert shown.isprintable()
        assert repr(text)[1:-1] in shown
        shown.encode()


def test_an_event_is_cut() -> None:
    log = EventLog()
    log.add(Kind.CONFIGURATION_CHANGED, "x" * 10**6, "y" * 10**6)
    (event,) = log.after(0)
    assert len(event.subject) < 500
    assert len(event.message) < 2000


# Half of a surrogate pair is no text: HAMi's formats refuse it.
@pytest.mark.parametrize("text", [text for text in STRANGE if "\ud800" not in text])
def test_a_real_plugins_annotation_may_have_anything_for_an_id(
    text: str, socket_folder: Path
) -> None:
    found = derived(node(cards(card(text, type=text, health=False), card("GPU-2", index=1))))
    (uuid,) = found.ill
    assert [each.uuid for each in found.node.cards] == [uuid, "GPU-2"]
    agent = make_agent(socket_folder)
    agent.state.change(found.node)
    collector = NodeCollector(agent.state, agent.offerings, agent.configuration)
    metrics = render(collector).decode()
    healthy = {
        sample.labels["uuid"]: sample.labels["model"]
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == "hami_mock_card_healthy"
    }
    assert healthy == {uuid: uuid, "GPU-2": "NVIDIA-V100"}
    for resource in found.node.resources:
        devices = [*wire.read_devices(resource.encode_list({uuid}))]
        assert len(devices) == resource.count
        assert {health for _, health in devices} == {"Healthy", "Unhealthy"}
    json.dumps(status(agent.state, agent.plugins), ensure_ascii=False).encode()


def test_cards_whose_ids_look_alike_stay_apart() -> None:
    long = "x" * 1000
    found = derived(node(cards(card(f"{long}1"), card(f"{long}2", index=1))))
    assert len({each.uuid for each in found.node.cards}) == 2


def slots_of(card: Card) -> Share:
    resource = next(r for r in laid_out().resources if r.has_slots)
    return Share(resource.name, "x", resource.offer, resource.vendor, (card,), (3,))


def test_slots_of_a_card_with_a_strange_id_are_listed() -> None:
    first = laid_out().cards[0]
    ((resource,), _) = size([slots_of(replace(first, uuid="Gerät\n"))], None)
    assert [i for i, _ in wire.read_devices(resource.encode_list())] == [
        "Gerät\\n-0",
        "Gerät\\n-1",
        "Gerät\\n-2",
    ]
    assert resource.list_size() == len(resource.encode_list())


@pytest.mark.parametrize("text", STRANGE)
def test_a_resource_with_an_unprintable_name_is_left_out(text: str) -> None:
    share = replace(slots_of(laid_out().cards[0]), name=f"example.com/{text}")
    resources, (left_out,) = size([share], None)
    assert resources == ()
    assert left_out.name.isprintable()
    assert "can't be printed" in left_out.reason
