from pathlib import Path
from typing import Any

import pytest

from hami_mock.fleet.allocation import Shape
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.snapshot import COLUMNS, Mark, Snapshot
from hami_mock.node.event_kinds import Kind
from tests.invented_fleet import assigned_pod, invented_fleet, place, uuids, work

FINE = Mark.THERE | Mark.READY


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return invented_fleet(tmp_path)


@pytest.fixture
def shown(fleet: Fleet) -> Snapshot:
    snapshot = Snapshot(fleet)
    snapshot.look()
    return snapshot


def number_of(shown: Snapshot, node: str) -> int:
    """The node's number among all, as the page reckons it from the groups."""
    names = [
        f"{pool['name']}-{index}"
        for pool in shown.data()["pools"]
        for group in pool["groups"]
        for index in group["nodes"]
    ]
    return names.index(node)


def row_of(shown: Snapshot, node: str) -> dict[str, int]:
    at = number_of(shown, node) * len(COLUMNS)
    return dict(zip(COLUMNS, shown.data()["rows"][at : at + len(COLUMNS)], strict=True))


def pool_of(shown: Snapshot, name: str) -> dict[str, Any]:
    return next(pool for pool in shown.data()["pools"] if pool["name"] == name)


def act(fleet: Fleet, verb: str, *words: str, **parameters: Any) -> None:
    fleet.act(verb, fleet.find(words), parameters)


def test_nodes_stand_in_their_racks_and_racks_in_their_zones(shown: Snapshot) -> None:
    assert pool_of(shown, "a100")["groups"] == [
        {"zone": "eu-1a", "rack": "a100-r0", "nodes": [*range(8)]},
        {"zone": "eu-1a", "rack": "a100-r2", "nodes": [*range(16, 24)]},
        {"zone": "eu-1b", "rack": "a100-r1", "nodes": [*range(8, 16)]},
    ]
    assert pool_of(shown, "t4")["groups"] == [{"zone": "", "rack": "", "nodes": [*range(6)]}]


def test_a_row_says_how_much_of_a_node_is_allocated(fleet: Fleet, shown: Snapshot) -> None:
    cards = uuids(fleet, "a100-3")
    place(fleet, "a100-3", assigned_pod("p", (cards[0], 81920, 100), (cards[1], 40960, 50)))
    assert shown.look().rows == [number_of(shown, "a100-3"), 19, 2, 19, int(FINE)]
    assert row_of(shown, "a100-3") == {"memory": 19, "slots": 2, "cores": 19, "mark": int(FINE)}
    assert row_of(shown, "a100-4") == {"memory": 0, "slots": 0, "cores": 0, "mark": int(FINE)}


@pytest.mark.parametrize(("memory", "percent"), [(1, 1), (8 * 81920 - 1, 99), (8 * 81920, 100)])
def test_a_little_is_not_nothing_and_nearly_all_is_not_all(
    fleet: Fleet, shown: Snapshot, memory: int, percent: int
) -> None:
    place(fleet, "a100-0", assigned_pod("p", ("GPU-1", memory, 0)))
    shown.look()
    assert row_of(shown, "a100-0")["memory"] == percent


@pytest.mark.parametrize(
    ("verb", "words", "mark"),
    [
        ("fail", ("a100-3:0",), Mark.BROKEN),
        ("lose", ("a100-3:0",), Mark.BROKEN),
        ("degrade", ("a100-3:0",), Mark.DEGRADED),
        ("stop-node", ("a100-3",), Mark.STOPPED),
        ("down", ("a100-3",), Mark.FAULT),
    ],
)
def test_a_mark_says_what_is_wrong(
    fleet: Fleet, shown: Snapshot, verb: str, words: tuple[str, ...], mark: Mark
) -> None:
    act(fleet, verb, *words)
    shown.look()
    assert Mark(row_of(shown, "a100-3")["mark"]) == FINE | mark
    assert pool_of(shown, "a100")["ill"] == 1
    act(fleet, "clear", "a100-3")
    act(fleet, "start-node", "a100-3")
    shown.look()
    assert Mark(row_of(shown, "a100-3")["mark"]) == FINE
    assert pool_of(shown, "a100")["ill"] == 0


def test_cards_with_two_faults_are_counted_once(fleet: Fleet, shown: Snapshot) -> None:
    act(fleet, "fail", "a100-3:0", "a100-4")
    act(fleet, "lose", "a100-3:0")
    shown.look()
    assert pool_of(shown, "a100")["cards"] == 24 * 8
    assert pool_of(shown, "a100")["usable"] == 24 * 8 - 9


def test_who_is_not_there_has_no_cards_and_is_not_ready(fleet: Fleet, shown: Snapshot) -> None:
    fleet.members["t4-5"].is_there = False
    fleet.members["t4-4"].is_ready = False
    shown.look()
    found = pool_of(shown, "t4")
    assert (found["nodes"], found["there"], found["ready"], found["cards"]) == (6, 5, 4, 10)
    assert found["slots"] == [0, 5 * 20]
    assert row_of(shown, "t4-5")["mark"] == 0


def test_totals_kept_up_are_those_made_anew(fleet: Fleet, shown: Snapshot) -> None:
    work(fleet)
    act(fleet, "fail", "rack=a100-r1")
    shown.look()
    for member in [*fleet.members.values()][::3]:
        member.pods = None
        member.is_ready = False
    act(fleet, "recover", "a100-9")
    shown.look()
    anew = Snapshot(fleet)
    anew.look()
    assert shown.data()["pools"] == anew.data()["pools"]
    assert shown.data()["rows"] == anew.data()["rows"]
    assert pool_of(shown, "a100")["memory"][0] > 0


def test_only_nodes_that_changed_are_looked_at_again(
    fleet: Fleet, shown: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(fleet)
    shown.look()
    asked: list[str] = []
    real = Shape.used_by

    def counted(self: Shape, pod: Any) -> Any:
        asked.append(pod.name)
        return real(self, pod)

    monkeypatch.setattr(Shape, "used_by", counted)
    assert shown.look().rows == []
    assert asked == []
    place(fleet, "t4-5", assigned_pod("new", ("GPU-1", 100, 1)))
    assert shown.look().rows[0] == number_of(shown, "t4-5")
    assert set(asked) == {pod.name for pod in (fleet.members["t4-5"].pods or {}).values()}


def test_a_pod_that_ends_is_seen_also_where_the_pods_are_changed_in_place(
    fleet: Fleet, shown: Snapshot
) -> None:
    place(fleet, "t4-0", assigned_pod("p", ("GPU-1", 16000, 100)))
    shown.look()
    pods = fleet.members["t4-0"].pods
    assert pods is not None
    del pods["default", "p"]
    assert shown.look().rows == [number_of(shown, "t4-0"), 0, 0, 0, int(FINE)]
    assert pool_of(shown, "t4")["pods"] == 0


def test_much_that_changed_is_told_in_parts(fleet: Fleet, shown: Snapshot) -> None:
    for member in fleet.members.values():
        member.is_ready = False
    parts = [shown.look(most=10) for _ in range(4)]
    assert [len(part.rows) // (len(COLUMNS) + 1) for part in parts] == [10, 10, 10, 0]
    assert [part.is_all for part in parts] == [False, False, False, True]


def test_other_nodes_are_said_to_be_others(fleet: Fleet, shown: Snapshot) -> None:
    assert not shown.look().is_other
    fleet.scale("t4", 8)
    assert shown.look().is_other
    assert pool_of(shown, "t4")["nodes"] == 8
    assert not shown.look().is_other
    fleet.adopt("t4-77")
    assert shown.look().is_other
    assert pool_of(shown, "t4")["groups"][0]["nodes"] == [*range(8), 77]


def test_the_latest_events_are_told(fleet: Fleet, shown: Snapshot) -> None:
    for number in range(60):
        fleet.events.add(Kind.XID, "a100-1", f"the {number}th")
    events = shown.data()["events"]
    assert [events[0]["message"], events[-1]["message"], len(events)] == [
        "the 10th",
        "the 59th",
        50,
    ]
    assert events[0]["warning"] is True
