import json
import re
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.page.feed import Feed
from hami_mock.fleet.page.routes import FILE, page_routes
from hami_mock.views.http.messages import Answer, answer_to
from hami_mock.views.page.routes import content_security_policy, page
from tests.invented_fleet import assigned_pod, invented_fleet, place, uuids

TEXT = FILE.read_text()


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return invented_fleet(tmp_path)


def ask(fleet: Fleet, path: str) -> tuple[HTTPStatus, Any]:
    head = f"GET {path} HTTP/1.1\r\n\r\n".encode()
    answer = answer_to(head, page_routes(Feed(fleet), fleet))
    assert isinstance(answer, Answer)
    return answer.status, json.loads(answer.body)


def test_the_fleet_has_a_page_of_its_own(fleet: Fleet) -> None:
    found = answer_to(b"GET / HTTP/1.1\r\n\r\n", page_routes(Feed(fleet), fleet))
    assert isinstance(found, Answer)
    assert found.body == FILE.read_bytes() != page().body
    policy = content_security_policy(FILE.read_bytes())
    assert found.headers["Content-Security-Policy"] == policy


def test_what_a_node_is_like(fleet: Fleet) -> None:
    first, second, *_ = uuids(fleet, "a100-17")
    pod = assigned_pod("trainer", (first, 4000, 30), (second, 8000, 0))
    place(fleet, "a100-17", pod)
    fleet.act("fail", fleet.find(["a100-17:1"]), {"xid": 79})
    fleet.act("stop-node", fleet.find(["a100-17"]), {"reason": "no power"})
    status, found = ask(fleet, "/nodes/a100-17")
    assert status is HTTPStatus.OK
    assert (found["zone"], found["rack"], found["ready"]) == ("eu-1a", "a100-r2", True)
    assert found["faults"] == ["stopped: no power"]
    assert len(found["cards"]) == 8
    assert found["cards"][0]["used"] == {"memory": 4000, "slots": 1, "cores": 30}
    assert found["cards"][1]["health"] == "unhealthy"
    assert found["cards"][1]["reasons"] == ["unhealthy: Xid 79 (GPU has fallen off the bus)"]
    assert found["cards"][2]["used"] == {"memory": 0, "slots": 0, "cores": 0}
    shown = {"name": "default/trainer", "phase": "Running", "memory": 12000, "slots": 2}
    assert found["pods"] == [{**shown, "cores": 30}]


def test_a_pod_that_is_over_is_not_on_a_card(fleet: Fleet) -> None:
    (first, *_) = uuids(fleet, "a100-0")
    pod = assigned_pod("done", (first, 4000, 30))
    over = replace(pod, phase="Succeeded")
    place(fleet, "a100-0", over)
    _, found = ask(fleet, "/nodes/a100-0")
    assert found["pods"] == []
    assert found["cards"][0]["used"]["memory"] == 0


def test_no_more_pods_are_told_than_can_be_read(fleet: Fleet) -> None:
    place(fleet, "t4-0", *(assigned_pod(f"p{n}", ("GPU-x", 1, 0)) for n in range(250)))
    _, found = ask(fleet, "/nodes/t4-0")
    assert (len(found["pods"]), found["more_pods"]) == (200, 50)


@pytest.mark.parametrize("name", ["a100-24", "a100", "..", "%61100-1"])
def test_a_node_that_is_not_there_is_not_found(fleet: Fleet, name: str) -> None:
    status, found = ask(fleet, f"/nodes/{name}")
    assert status is HTTPStatus.NOT_FOUND
    assert found == {"error": "there is no such node"}


def test_text_never_becomes_markup() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", TEXT)
    assert not re.search(r"<[^>]+\son\w+=", TEXT)
    assert not re.search(r"<[^>]+\sstyle=", TEXT)


def test_the_page_names_no_other_place() -> None:
    assert set(re.findall(r"https?://[^\s'\"]+", TEXT)) == {"http://www.w3.org/2000/svg"}
    assert re.findall(r"fetch\(([^)]*)", TEXT) == ["`nodes/${encodeURIComponent(name"]


def test_the_page_can_be_walked_through_without_eyes_or_a_mouse() -> None:
    for part in ('<html lang="en">', "<header", "<main", "<aside", 'href="#pools"'):
        assert part in TEXT
    assert 'role="log" aria-live="polite"' in TEXT
    assert ":focus-visible" in TEXT
    assert TEXT.count("prefers-reduced-motion") == 2
    assert "prefers-color-scheme: dark" in TEXT
