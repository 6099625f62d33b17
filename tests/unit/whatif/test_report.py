import json
from dataclasses import replace

import pytest

from hami_mock.whatif.outcome import Amounts, Fullest, Stranded
from hami_mock.whatif.report import MOST_MOMENTS, UNITS, Answers, chosen, document
from tests.unit.whatif.outcomes import (
    ANSWERS,
    ASKED,
    PLACEMENTS,
    POOL,
    PURCHASE,
    USELESS_PURCHASE,
    moments,
    outcome,
)

KEYS = {
    "version", "fleet", "workload", "rules", "answer", "moment", "reasons", "total", "peak",
    "pools", "heat", "fragmentation", "timeline", "policies", "purchases", "advice", "judge",
    "judge_hami", "refused", "placed",
}  # fmt: skip


def test_a_report_is_json_with_the_keys_that_are_documented() -> None:
    found = document(ASKED, ANSWERS)
    assert found.keys() == KEYS
    assert json.loads(json.dumps(found)) == found


def test_the_moment_that_is_told_of_is_the_end_or_the_fullest() -> None:
    last = {"is_fullest": False, "time": 0.0, "arrived": 7, "running": 4}
    assert document(ASKED, ANSWERS)["moment"] == last
    fullest = replace(outcome(), fullest=Fullest(60.0, 5, 3))
    found = document(ASKED, Answers((fullest,)))["moment"]
    assert found == {"is_fullest": True, "time": 60.0, "arrived": 5, "running": 3}


def test_the_peak_is_the_moment_that_is_shown_or_higher() -> None:
    low = tuple(each._replace(taken=Amounts()) for each in outcome().timeline)
    found = document(ASKED, Answers((replace(outcome(), timeline=low),)))
    assert found["peak"]["memory"] == found["total"]["memory"]["share"] == 0.5


def test_the_answer_counts_pods() -> None:
    found = document(ASKED, ANSWERS)
    assert found["answer"] == {
        "pods": 7, "fit": 4, "refused": 3, "share": 0.5714, "waited": 0, "longest_wait": 0.0,
        "seconds": 0.25,
    }  # fmt: skip
    assert found["fleet"] == {"file": "fleet.yaml", "nodes": 3, "cards": 2, "added": {}}
    assert found["rules"] == {"policy": "binpack", "scheduler": "hami", "seed": 7}


def test_reasons_and_refused_pods_say_the_same() -> None:
    found = document(ASKED, ANSWERS)
    reasons = {each["reason"]: each["pods"] for each in found["reasons"]}
    assert reasons == {"CardInsufficientMemory": 2, "Insufficient cpu": 1}
    assert [each["reason"] for each in found["refused"]] == [
        "CardInsufficientMemory",
        "Insufficient cpu",
        "CardInsufficientMemory",
    ]
    assert found["reasons"][0]["example"]["pod"] == found["refused"][0]["pod"] == "train-4"


def test_the_total_is_the_sum_of_the_pools() -> None:
    found = document(ASKED, ANSWERS)
    for key in UNITS:
        for of in ("there", "taken"):
            assert found["total"][key][of] == sum(pool[key][of] for pool in found["pools"])
    assert found["total"]["stranded"] == POOL.stranded._asdict()
    assert found["total"]["memory"] == {
        "unit": "MiB", "there": 163840, "taken": 81920, "share": 0.5, "fragmented": 0.0,
        "useless": 0,
    }  # fmt: skip


def test_a_pool_without_cards_has_no_shares_of_them() -> None:
    pool = document(ASKED, ANSWERS)["pools"][1]
    assert pool["memory"]["share"] is None
    assert pool["memory"]["fragmented"] is None
    assert pool["cpu"]["share"] == 0


def test_the_peak_is_what_was_ever_taken() -> None:
    ended = replace(outcome(), timeline=(*moments(), moments()[0]))
    found = document(ASKED, Answers((ended,)))
    assert found["peak"]["memory"] == 0.5
    assert found["peak"]["cpu"] == round(16000 / 72000, 4)
    assert found["peak"]["mig"] is None


def test_who_waited_is_told() -> None:
    late = [PLACEMENTS[0]._replace(waited=60.0), PLACEMENTS[1]._replace(waited=7.5)]
    found = document(ASKED, Answers((outcome(late, ()),)))
    assert found["answer"]["waited"] == 2
    assert found["answer"]["longest_wait"] == 60


@pytest.mark.parametrize("count", [1, MOST_MOMENTS, MOST_MOMENTS + 1, 5000])
def test_a_timeline_keeps_its_ends_and_not_too_much_between(count: int) -> None:
    every = moments(count)
    found = chosen(every)
    assert len(found) == min(count, MOST_MOMENTS)
    assert (found[0], found[-1]) == (every[0], every[-1])
    assert found == sorted(found)


def test_policies_are_compared_in_the_order_in_which_they_were_asked_for() -> None:
    better = outcome([*PLACEMENTS, *PLACEMENTS[:2]], outcome().refusals[:1], "spread")
    found = document(ASKED, Answers((outcome(), better)))
    assert [(each["policy"], each["fit"]) for each in found["policies"]] == [
        ("binpack", 4),
        ("spread", 6),
    ]
    assert found["policies"][0]["memory_over_time"][-1] == [7, 0.5]
    assert "Use the policy spread: 2 more fit, and nothing is bought." in texts(found)


def test_a_purchase_that_is_enough_comes_first_and_one_that_helps_nobody_not_at_all() -> None:
    some = replace(PURCHASE, pool="t4", best=PURCHASE.points[1], points=PURCHASE.points[:2])
    found = document(ASKED, Answers((outcome(),), (USELESS_PURCHASE, some, PURCHASE)))
    assert texts(found)[:2] == [
        "Buy 2 more nodes of a100: all pods fit.",
        "Buy 1 more node of t4: 2 more fit; the other 1 never fits there.",
    ]
    assert not any("cpu" in text for text in texts(found))
    assert found["purchases"][1]["curve"] == [[0, 4], [1, 6]]


def test_if_no_purchase_helps_that_is_told() -> None:
    found = document(ASKED, Answers((outcome(),), (USELESS_PURCHASE,)))
    assert texts(found)[0] == "More nodes of cpu don't help any pod that doesn't fit."


def test_where_enough_fit_nobody_says_that_no_purchase_helps() -> None:
    enough = replace(USELESS_PURCHASE, wanted=4)
    found = document(ASKED, Answers((outcome(),), (enough,)))
    assert not any("don't help" in text for text in texts(found))


def test_stranded_memory_is_worth_a_line_from_a_twentieth_on() -> None:
    def told(memory: int) -> bool:
        pool = replace(POOL, stranded=Stranded(memory_without_cores=memory))
        found = document(ASKED, Answers((replace(outcome(), pools=(pool,)),)))
        return any("without free cores" in text for text in texts(found))

    assert told(163840 // 20)
    assert not told(163840 // 20 - 1)


def test_nothing_is_advised_where_all_fit() -> None:
    assert texts(document(ASKED, Answers((outcome(PLACEMENTS, ()),), (PURCHASE,)))) == []


def texts(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["text"] for each in found["advice"]]
