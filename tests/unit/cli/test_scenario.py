import pytest

from hami_mock.cli.scenario import parser, rehearsal_table, rehearse
from tests.unit.builders import laid_out, problems_of
from tests.unit.faults.scripts import of_steps

NODE = laid_out()
STORM = of_steps({"at": 30, "fail": "nvidia", "xid": 79, "choose": 1, "for": "2m"}, seed=7)


def test_the_rows_are_what_would_happen_with_the_cards_that_would_be_drawn() -> None:
    rows = rehearse(STORM, NODE).rows
    (card,) = rows[0]["targets"]
    assert card in ("nvidia/0", "nvidia/1")
    did = "fail 1 of nvidia: Xid 79 (GPU has fallen off the bus)"
    same = {"round": 1, "step": "steps[0]", "targets": [card]}
    assert rows == [
        {"time": 30.0, "what": f"{did}, for 2m", **same},
        {"time": 150.0, "what": f"undo {did}", **same},
    ]


def test_the_table_shows_the_timeline_and_its_end() -> None:
    lines = list(rehearsal_table(rehearse(STORM, NODE), NODE))
    assert lines[0] == "storm on node node-a, with seed 7:"
    assert lines[2].split() == ["TIME", "STEP", "WHAT", "ON"]
    assert lines[3].split()[:3] == ["30s", "steps[0]", "fail"]
    assert lines[4].split()[:3] == ["2m30s", "steps[0]", "undo"]
    assert lines[-1] == "It ends at 2m30s."


def test_another_seed_may_be_given() -> None:
    assert rehearse(STORM, NODE, seed=9).seed == 9


def test_a_scenario_without_end_is_shown_for_an_hour() -> None:
    endless = of_steps({"every": "10m", "drop": "mlu"})
    shown = rehearse(endless, NODE)
    assert [row["time"] for row in shown.rows] == [600 * number for number in range(7)]
    *_, last = rehearsal_table(shown, NODE)
    assert last == "It runs until it is stopped; --until shows more or less of it."
    assert len(rehearse(endless, NODE, until=1200).rows) == 3


def test_a_scenario_that_only_stays_as_it_is_is_shown_whole() -> None:
    *_, last = rehearsal_table(rehearse(of_steps({"fail": "all"}, length="forever"), NODE), NODE)
    assert last == "It runs until it is stopped."


def test_the_end_of_a_round_is_shown_where_it_undoes_something() -> None:
    rows = rehearse(of_steps({"fail": "mlu/0"}, length=10, repeat=2), NODE).rows
    assert [(row["time"], row["round"], row["what"]) for row in rows] == [
        (0, 1, "fail mlu/0"),
        (10, 1, "end of the round: everything is undone"),
        (10, 2, "fail mlu/0"),
        (20, 2, "end of the round: everything is undone"),
    ]


def test_very_many_moments_are_cut_off() -> None:
    shown = rehearse(of_steps({"every": 1, "times": 1_000_000, "recover": "mlu/0"}), NODE)
    assert len(shown.rows) == 10_000
    assert shown.goes_on


def test_ignored_xids_have_nothing_to_undo() -> None:
    assert len(rehearse(STORM, NODE, ignored_xids={79}).rows) == 1


def test_the_arguments_are_a_file_and_a_time() -> None:
    words = ["check", "x.yaml", "--until", "10m", "--seed", "3", "--nvidia-cards", "8"]
    parsed = parser().parse(words)
    assert (parsed.file, parsed.until) == ("x.yaml", 600)
    assert problems_of(lambda: parser().parse(["check", "x.yaml", "--until", "soon"])) == (
        "scenario: argument --until: 'soon' is not allowed: it must be a time such as 30s, 2m, "
        "1h30m or 500ms, at most 7d",
    )


@pytest.mark.parametrize("count", [2, 8])
def test_many_names_are_cut_short_in_the_table(count: int) -> None:
    node = laid_out(nvidia_cards=count)
    line = list(rehearsal_table(rehearse(of_steps({"recover": "nvidia"}), node), node))[3]
    assert line.endswith("nvidia/0, nvidia/1" if count == 2 else " ...")
