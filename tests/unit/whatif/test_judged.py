from typing import cast

import pytest

from hami_mock.errors import UsageError
from hami_mock.fleet.sandbox import Programs
from hami_mock.whatif.demand import Workload
from hami_mock.whatif.judge import judge
from hami_mock.whatif.judged import told
from hami_mock.whatif.rules import Rules, Scheduler
from hami_mock.whatif.verdict import Difference, Verdict
from tests.unit.whatif.outcomes import pools


def test_where_both_agree_one_line_says_so() -> None:
    found = told(Verdict(1200, 1000, 20, (), 1000))
    assert found["lines"] == [
        "The real kube-scheduler, which sees no cards, places 1,000 of 1,200 pods, 20 of them by "
        "chance among equal nodes.",
        "By the same rules and on the same terms, the placer places 1,000.",
        "By these rules each of the scheduler's decisions is right.",
    ]
    assert found["differences"] == []


def test_each_difference_is_told_and_of_many_only_the_first() -> None:
    unlike = tuple(Difference(f"p{n}", "n1", "n2", "another score") for n in range(12))
    found = told(Verdict(12, 12, 0, unlike, 12))
    assert found["lines"][2] == "p0: it says n1, the placer n2: another score."
    assert found["lines"][-1] == "2 more pods differ; the JSON has all of them."
    assert len(found["lines"]) == 13
    assert len(found["differences"]) == 12
    assert "chance" not in found["lines"][0]


def test_totals_that_differ_by_chance_are_explained() -> None:
    found = told(Verdict(12, 10, 3, (), 9))
    assert (found["placed"], found["alone"]) == (10, 9)
    assert found["lines"][1] == (
        "By the same rules and on the same terms, the placer places 9: among equal nodes it takes "
        "the first, kube-scheduler any of them."
    )


def test_hamis_scheduler_is_told_of_in_its_own_words() -> None:
    found = told(Verdict(12, 10, 0, (), 9), scheduler=Scheduler.HAMI)
    assert found["scheduler"] == "hami"
    assert found["lines"] == [
        "HAMi's own scheduler places 10 of 12 pods.",
        "By the same rules and on the same terms, the placer places 9: among equal nodes and cards "
        "it takes the first, HAMi any of them.",
        "By these rules there is room for each pod that it places, and for none that it refuses.",
    ]


def test_where_pods_end_elsewhere_the_other_terms_are_said() -> None:
    verdict = Verdict(160, 112, 0, (), 112)
    assert told(verdict, had_ends=True)["lines"][0].startswith("For the judge, pods never end, so")
    assert len(told(verdict)["lines"]) == 3


def test_a_fleet_without_nodes_is_not_put_before_the_judge() -> None:
    with pytest.raises(UsageError, match="--judge: the fleet has no nodes"):
        judge(pools(a100=0), Workload(()), Rules(), cast("Programs", None))
