from hami_mock.whatif.judged import told
from hami_mock.whatif.verdict import Difference, Verdict


def test_where_both_agree_one_line_says_so() -> None:
    found = told(Verdict(1200, 1000, 20, ()))
    assert found["lines"] == [
        "The real kube-scheduler, which sees no cards, places 1,000 of 1,200 pods, 20 of them by "
        "chance among equal nodes.",
        "By the placer's rules for it, each of these decisions is right.",
    ]
    assert found["differences"] == []


def test_each_difference_is_told_and_of_many_only_the_first() -> None:
    unlike = tuple(Difference(f"p{n}", "n1", "n2", "another score") for n in range(12))
    found = told(Verdict(12, 12, 0, unlike))
    assert found["lines"][1] == "p0: it says n1, the placer n2: another score."
    assert found["lines"][-1] == "2 more pods differ; the JSON has all of them."
    assert len(found["lines"]) == 12
    assert len(found["differences"]) == 12
    assert "chance" not in found["lines"][0]
