from dataclasses import replace
from textwrap import dedent

import pytest

from hami_mock.whatif.outcome import Fullest
from hami_mock.whatif.report import Answers, document
from hami_mock.whatif.report_text import gib, headline, lines, percent, rules_line, waits_line
from tests.unit.whatif.outcomes import (
    ANSWERS,
    ASKED,
    PLACEMENTS,
    PURCHASE,
    REFUSALS,
    USELESS_PURCHASE,
    outcome,
    refusal,
)

GOLDEN = """\
    4 of 7 pods fit; 3 don't: 2 for card memory, 1 for CPU.
    On 3 nodes with 2 cards, by HAMi's scheduler, policy binpack.

    Why pods don't fit:
    THEY LACK    PODS  SUCH AS  WHICH ASKS FOR
    card memory     2  train-4  1 nvidia.com/gpu, 61440 nvidia.com/gpumem
    CPU             1  train-5  1 nvidia.com/gpu, 61440 nvidia.com/gpumem

    What is taken:
    POOL  NODES  CARDS  MEMORY  CORES  SLOTS   CPU   RAM
    a100    1/1    1/2    50 %   50 %   20 %  25 %  25 %
    cpu     0/2      -       -      -      -   0 %   0 %
    all     1/3    1/2    50 %   50 %   20 %  22 %  24 %

    What is left of the cards' memory, and how useful it is:
    POOL    FREE  FRAGMENTED  USELESS  NO CORES  NO SLOTS  NO CPU/RAM  IDLE CARDS
    a100  80 GiB         0 %    0 MiB     0 MiB     0 MiB      80 GiB           1

    Policies compared:
    POLICY   FIT  DON'T  NODES  CARDS  MEMORY  CORES  FRAGMENTED
    binpack    4      3      1      1    50 %   50 %         0 %
    spread     6      1      1      1    50 %   50 %         0 %

    More nodes, so that 7 pods fit:
    POOL  BUY  PODS FIT  GAINED  ENOUGH
    a100    2         7       3  yes
    cpu     0         4       0  no

    What would help:
    - Buy 2 more nodes of a100: all pods fit.
    - Use the policy spread: 2 more fit, and nothing is bought.
    - 50 % of the card memory is free on nodes without CPU, memory or room for a
      pod: let pods ask for less of these, or give the nodes more.
    - 1 card is untouched on nodes without CPU, memory or room for a pod.
"""
SPREAD = outcome([*PLACEMENTS, *PLACEMENTS[:2]], REFUSALS[:1], "spread")


def told(answers: Answers) -> list[str]:
    return [*lines(document(ASKED, answers))]


def test_a_report_reads_like_this() -> None:
    found = told(Answers((outcome(), SPREAD), (PURCHASE, USELESS_PURCHASE)))
    assert "\n".join(found) + "\n" == dedent(GOLDEN)


def test_the_answer_is_the_first_line() -> None:
    assert told(Answers((outcome(PLACEMENTS, ()),)))[0] == "All 4 pods fit."
    assert told(Answers((outcome(PLACEMENTS[:1], ()),)))[0] == "The pod fits."
    none = document(ASKED, Answers((outcome((), REFUSALS[1:2]),)))
    assert headline(none) == "The pod doesn't fit: it lacks CPU."


def test_numbers_are_as_people_write_them() -> None:
    many = outcome(PLACEMENTS * 3000, REFUSALS[:2] * 600)
    assert headline(document(ASKED, Answers((many,)))) == (
        "12,000 of 13,200 pods fit; 1,200 don't: 600 for card memory, 600 for CPU."
    )


def test_who_waited_is_told_in_a_line() -> None:
    late = outcome([PLACEMENTS[0]._replace(waited=3700.4), *PLACEMENTS[1:]], ())
    found = document(ASKED, Answers((late,)))
    assert waits_line(found) == "1 of them waited for others to end, at most 1h1m40s."
    assert waits_line(found) in [*lines(found)]
    assert waits_line(document(ASKED, ANSWERS)) == ""


def test_of_pods_that_end_the_fullest_moment_is_shown_and_said() -> None:
    found = told(Answers((replace(outcome(), fullest=Fullest(7325.2, 5, 1234)),)))
    assert "What is taken when the fleet is fullest (after 2h2m5s, 1,234 pods running):" in found
    assert "What is left of the cards' memory then, and how useful it is:" in found


def test_what_was_added_is_told() -> None:
    asked = replace(ASKED, added={"a100": 2, "cpu": -1})
    assert rules_line(document(asked, ANSWERS)) == (
        "On 3 nodes with 2 cards (+2 of a100, -1 of cpu), by HAMi's scheduler, policy binpack."
    )


@pytest.mark.parametrize("scheduler", ["hami", "kube"])
def test_the_policy_is_said_of_every_scheduler(scheduler: str) -> None:
    found = document(ASKED, Answers((replace(outcome(), scheduler=scheduler),)))
    assert rules_line(found).endswith(", policy binpack.")


@pytest.mark.parametrize("columns", ["80", "100"])
@pytest.mark.parametrize("name", ["x" * 200, "with spaces " * 20, "\x1b[31mred\nline"])
def test_no_line_is_wider_than_the_terminal(
    columns: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    some = outcome(refusals=[refusal(n, {"CardInsufficientMemory": 2}, name) for n in range(9)])
    found = told(Answers((some,), (PURCHASE,)))
    assert max(map(len, found)) <= int(columns)
    assert all(line.isprintable() for line in found)


def test_where_there_is_no_terminal_lines_have_80_columns() -> None:
    some = outcome(refusals=[refusal(4, {"CardInsufficientMemory": 2}, "pod-" * 60)])
    assert max(map(len, told(Answers((some,))))) <= 80


def test_a_fleet_of_many_pools_is_cut_short() -> None:
    one = outcome()
    many = replace(one, pools=tuple(replace(one.pools[0], pool=f"p{n}") for n in range(60)))
    found = told(Answers((many,)))
    assert "… and 20 more pools, which -o json and the page have" in found
    assert len(found) < 120


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "-"), (0, "0 %"), (0.001, "<1 %"), (0.5, "50 %"), (0.999, ">99 %"), (1, "100 %")],
)
def test_only_all_is_all_and_only_nothing_is_nothing(share: float | None, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("memory", "text"),
    [(0, "0 MiB"), (1023, "1023 MiB"), (1024, "1 GiB"), (163840, "160 GiB"), (1.5e9, "1.4 PiB")],
)
def test_memory_is_in_the_largest_unit_that_it_has_one_of(memory: float, text: str) -> None:
    assert gib(memory) == text


def test_what_means_nothing_here_is_noted_at_the_end() -> None:
    workload = replace(ASKED.workload, notes=("service/web has no pods, and doesn't count",))
    found = [*lines(document(replace(ASKED, workload=workload), ANSWERS))]
    assert found[-1] == "note: service/web has no pods, and doesn't count"


def test_of_many_notes_only_some_are_told() -> None:
    workload = replace(ASKED.workload, notes=tuple(f"pod/p{n}: …" for n in range(12)))
    found = [*lines(document(replace(ASKED, workload=workload), ANSWERS))]
    assert found[-3:] == ["note: pod/p9: …", "", "… and 2 more notes, which -o json has"]
