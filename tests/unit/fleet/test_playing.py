"""Scenarios over a fleet."""

import pytest

from hami_mock.cli.scenario import rehearse_play
from hami_mock.errors import UsageError
from hami_mock.faults.player import Player
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.playing import OnFleet, read_scenario
from tests.unit.fleet.rig import A100, MLU, fleet_of


def rows(
    text: str, fleet: Fleet | None = None, seed: int = 1
) -> list[tuple[float, str, list[str]]]:
    fleet = fleet or fleet_of()
    player = Player(read_scenario(text, "drill.yaml", fleet), OnFleet(fleet), seed)
    return [(row["time"], row["what"], row["targets"]) for row in rehearse_play(player).rows]


def test_a_rack_fails_and_comes_back() -> None:
    fleet = fleet_of()
    found = rows("steps: [{at: 10s, fail: rack=a100-r0, reason: test, for: 1m}]", fleet)
    assert found == [
        (10.0, "fail rack=a100-r0: test, for 1m", ["a100-0", "a100-1"]),
        (70.0, "undo fail rack=a100-r0: test", ["a100-0", "a100-1"]),
    ]
    assert not any(member.faults for member in fleet.members.values())


def test_choose_counts_what_is_named() -> None:
    ((_, _, nodes), *_) = rows("{length: 1m, steps: [{stop-node: a100, choose: 2}]}")
    assert len(nodes) == 2
    assert all(":" not in name for name in nodes)
    ((_, _, cards), *_) = rows("{length: 1m, steps: [{fail: 'a100:nvidia', choose: 50%}]}")
    assert len(cards) == 3
    assert all(":nvidia/" in name for name in cards)


def test_the_same_seed_chooses_the_same() -> None:
    text = "{length: 1m, steps: [{fail: 'a100:*', choose: 2}]}"
    assert rows(text, seed=3) == rows(text, seed=3)
    assert len({str(rows(text, seed=seed)) for seed in range(8)}) > 1


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("{fail: rack=a100-r9}", "steps[0].fail: there is no rack 'a100-r9'"),
        ("{fail: 'a100:nvidia/9'}", "steps[0].fail: a100-0: there is no card 'nvidia/9'"),
        ("{break: all, call: prestart}", "steps[0].break: prestart: a kubelet calls it"),
        ("{stop-node: 'a100:0'}", "steps[0].stop-node: stop-node: name nodes, not cards"),
        ("{fail: mlu, xid: 79}", "steps[0].fail: only NVIDIA cards have Xids"),
        ("{drop: all}", "steps[0].drop: not a verb of fleets: their nodes"),
        ("{fail: all, refuse: all}", "steps[0].refuse: not a verb of fleets: their nodes"),
    ],
)
def test_what_can_never_happen_is_a_mistake(step: str, problem: str) -> None:
    text = f"{{length: 1m, steps: [{step}]}}"
    with pytest.raises(UsageError) as error:
        read_scenario(text, "drill.yaml", fleet_of(A100, MLU, options=""))
    assert problem in str(error.value)


def test_what_others_ended_meanwhile_is_passed_over() -> None:
    fleet = fleet_of()
    on = OnFleet(fleet)
    done = fleet.act("fail", fleet.find(["a100-0"]), {})
    faults = [fault for own in done.begun.values() for fault in own]
    fleet.act("recover", fleet.find(["a100-0"]), {})
    assert on.lift(faults) == ()
