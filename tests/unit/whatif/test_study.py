"""Questions answered by the real placer, on fleets small enough to reckon by hand."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hami_mock.settings.pools import Pool
from hami_mock.whatif.cluster_model import load_fleet
from hami_mock.whatif.demand import Arrival, Container, PodKind, Workload
from hami_mock.whatif.outcome import Outcome
from hami_mock.whatif.placer import place
from hami_mock.whatif.report import Answers
from hami_mock.whatif.rules import Rules, Scheduler
from hami_mock.whatif.study import Question, answer, shuffled
from tests.unit.builders import problems_of

FLEET = """
vendors: [nvidia]
pools:
  - {name: t4, nodes: 2, nvidia: {cards: 2, model: T4}}
  - {name: cpu, nodes: 1, nvidia: {cards: 0}}
"""
HALF = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 7000, "cpu": 1000}
HUGE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 70000, "cpu": 1000}


def pods(count: int, asks: dict[str, int], name: str = "pod") -> Workload:
    kind = PodKind((Container(asks),))
    return Workload(tuple(Arrival(f"{name}-{n}", "job/a", kind) for n in range(count)))


class Tried:
    """Asks the placer, and keeps by which rules and with how many nodes it was asked."""

    def __init__(self, folder: Path, workload: Workload) -> None:
        self._file, self._workload = folder / "fleet.yaml", workload
        self._file.write_text(FLEET)
        self.rules: list[str] = []
        self.nodes: list[int] = []

    def ask(self, question: Question) -> Answers:
        return answer(question, lambda rules: load_fleet(str(self._file), rules), self._place)

    def _place(self, pools: Sequence[Pool], rules: Rules) -> Outcome:
        self.rules.append(rules.policy)
        self.nodes.append(sum(pool.nodes for pool in pools))
        return place(pools, self._workload, rules)


def test_where_all_fit_nothing_else_is_tried(tmp_path: Path) -> None:
    tried = Tried(tmp_path, pods(8, HALF))
    found = tried.ask(Question())
    assert len(found.outcomes[0].placements) == 8
    assert tried.rules == ["hami"]
    assert found.purchases == ()


def test_what_helps_is_looked_for_by_itself(tmp_path: Path) -> None:
    tried = Tried(tmp_path, pods(14, HALF))
    found = tried.ask(Question())
    assert [each.policy for each in found.outcomes] == ["hami", "binpack", "spread", "topology"]
    assert {each.pool: each.best.bought for each in found.purchases} == {"t4": 2, "cpu": 0}


def test_on_a_large_fleet_only_what_was_asked_for_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hami_mock.whatif.study._LITTLE_WORK", 41)
    tried = Tried(tmp_path, pods(14, HALF))
    assert tried.ask(Question()).purchases == ()
    assert tried.rules == ["hami"]
    found = tried.ask(Question(buy=["t4"]))
    assert found.purchases[0].best.bought == 2


def test_policies_are_compared_and_the_first_is_told_of(tmp_path: Path) -> None:
    tried = Tried(tmp_path, pods(4, HALF))
    found = tried.ask(Question(("spread", "binpack")))
    assert [each.policy for each in found.outcomes] == ["spread", "binpack"]
    touched = [each.pools[0].cards_touched for each in found.outcomes]
    assert touched == [4, 2]


def test_a_purchase_may_be_for_fewer_than_all(tmp_path: Path) -> None:
    found = Tried(tmp_path, pods(20, HALF)).ask(Question(buy=["t4", "t4"], percent=60))
    (bought,) = found.purchases
    assert bought.wanted == 12
    assert bought.best.bought == 1


@pytest.mark.parametrize("percent", [1, 7, 14, 55, 57, 100])
def test_percent_are_of_the_pods_and_not_one_more(tmp_path: Path, percent: int) -> None:
    question = Question(("hami",), buy=["cpu"], percent=percent)
    (bought,) = Tried(tmp_path, pods(100, HALF)).ask(question).purchases
    assert bought.wanted == percent


def test_pods_that_come_with_the_nodes_are_not_what_they_were_bought_for(tmp_path: Path) -> None:
    agent = PodKind((Container({"cpu": 100}),), on_each_node=True)
    workload = Workload((Arrival("agent", "daemonset/agent", agent), *pods(14, HALF).arrivals))
    found = {each.pool: each for each in Tried(tmp_path, workload).ask(Question()).purchases}
    # Three agents run already; each node more has room for four others.
    assert (found["t4"].wanted, found["t4"].best) == (17, (2, 17))
    assert found["cpu"].gained == 0


def test_nodes_that_are_added_are_there_from_the_start(tmp_path: Path) -> None:
    tried = Tried(tmp_path, pods(14, HALF))
    found = tried.ask(Question(added={"t4": 2}))
    assert tried.nodes == [5]
    assert found.outcomes[0].refusals == ()
    fewer = Tried(tmp_path, pods(8, HALF)).ask(Question(("hami",), added={"t4": -1}))
    assert len(fewer.outcomes[0].placements) == 4


def test_what_fits_on_no_card_is_refused_for_its_size_and_no_purchase_helps(
    tmp_path: Path,
) -> None:
    found = Tried(tmp_path, pods(1, HUGE)).ask(Question())
    (one,) = found.outcomes[0].refusals
    assert one.near == {}
    assert one.reasons["CardInsufficientMemory"] == 2
    assert all(each.best.bought == 0 for each in found.purchases)


def test_what_fits_on_no_card_is_refused_for_it_also_where_others_have_taken_the_cpu(
    tmp_path: Path,
) -> None:
    others = pods(200, {"cpu": 1000}).arrivals
    workload = Workload((*others, *pods(1, {**HUGE, "cpu": 8000}, "huge").arrivals))
    *_, one = Tried(tmp_path, workload).ask(Question(("hami",))).outcomes[0].refusals
    assert one.pod == "huge-0"
    assert one.reasons == {"CardInsufficientMemory": 2, "NodeInsufficientDevice": 1}


def test_the_nodes_that_could_take_a_pod_say_what_they_lack(tmp_path: Path) -> None:
    found = Tried(tmp_path, pods(9, HALF)).ask(Question())
    (one,) = found.outcomes[0].refusals
    assert one.near == {"CardInsufficientMemory": 2}
    assert sum(one.reasons.values()) == 3


def test_kube_scheduler_alone_has_no_policies_to_compare(tmp_path: Path) -> None:
    workload = pods(50, {"nvidia.com/gpu": 1, "cpu": 1000})
    tried = Tried(tmp_path, workload)
    found = tried.ask(Question(scheduler=Scheduler.KUBE))
    assert {*tried.rules} == {"spread"}
    assert found.outcomes[0].refusals


def test_a_pool_that_isn_t_there_is_a_mistake_with_a_hint(tmp_path: Path) -> None:
    tried = Tried(tmp_path, pods(1, HALF))
    asked = Question(buy=["t44"], added={"gpu": 1, "cpu": -2})
    assert problems_of(lambda: tried.ask(asked)) == (
        "--buy: the fleet has no pool 't44'; did you mean t4?",
        "--add: the fleet has no pool 'gpu'; did you mean cpu?",
        "--add: cpu=-2 makes -1 nodes of the pool's 1: it must have from 0 to 100000",
    )
    assert tried.nodes == []


def test_a_seed_gives_one_order_and_loses_nobody() -> None:
    workload = pods(30, HALF)
    first, again, other = (shuffled(workload, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert sorted(first.arrivals, key=workload.arrivals.index) == [*workload.arrivals]
    assert shuffled(workload, None) is workload
