from pathlib import Path

import pytest

from hami_mock.faults.scenario import Loop, Part
from hami_mock.faults.scenario_reader import parse, read
from hami_mock.node.event_kinds import Kind
from hami_mock.node.events import EventLog
from hami_mock.node.fault import FaultKind, On
from hami_mock.node.fault_kinds import VERBS
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from tests.unit.faults.scripts import FakeTime, play

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted((EXAMPLES / "scenarios").glob("*.yaml"))
HOUR = 3600.0


def verbs_of(part: Part) -> set[str]:
    if isinstance(part, Loop):
        return set().union(*map(verbs_of, part.steps))
    return {part.action.verb}


def test_there_are_five() -> None:
    assert [file.stem for file in FILES] == [
        *("chaos", "flapping-card", "half-down", "rolling-xid-storm", "slow-allocation"),
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_plays_on_a_default_node_and_leaves_no_fault(file: Path) -> None:
    made = read(str(file))
    assert made.name == file.stem
    state = NodeState(configured_node(load({}), None))
    clock = FakeTime(limit=HOUR)
    play(made, state, clock)
    counts = state.events.counts
    assert state.faults == ()
    assert counts[Kind.SCENARIO_STEP_FAILED] == 0
    assert counts[Kind.SCENARIO_ENDED] == 1
    assert counts.total() > 5
    assert (clock.now - clock.start == HOUR) == (made.total is None)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_is_explained_and_fits_the_page(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert max(map(len, lines)) <= 104
    assert f"scenarios/{file.name}" in (EXAMPLES / "README.md").read_text()


def test_half_of_the_node_is_down_for_ten_minutes() -> None:
    made = read(str(EXAMPLES / "scenarios" / "half-down.yaml"))
    clock = FakeTime(start=0.0)
    state = NodeState(configured_node(load({}), None), EventLog(clock.clock))
    play(made, state, clock)
    changes = [(event.kind, event.time) for event in state.events.after(0)]
    assert [time for kind, time in changes if kind is Kind.CARD_FAILED] == [60] * 4
    assert [time for kind, time in changes if kind is Kind.CARD_RECOVERED] == [660] * 4


def test_chaos_has_a_seed_no_end_and_most_verbs() -> None:
    chaos = read(str(EXAMPLES / "scenarios" / "chaos.yaml"))
    assert chaos.seed
    assert chaos.total is None
    assert set(VERBS) - set().union(*map(verbs_of, chaos.steps)) == {"return", "up", "clear"}


def test_the_scenarios_in_the_readme_are_right() -> None:
    text = (EXAMPLES / "README.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```yaml\n")[1:]]
    assert len(blocks) >= 2
    for block in blocks:
        parse(block, "README.md")


def test_the_readme_has_every_verb_with_what_it_takes() -> None:
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in (EXAMPLES / "README.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    assert [row[0] for row in rows] == list(VERBS)
    for name, on, _, takes in rows:
        verb = VERBS[name]
        assert on == ("both" if verb.on is On.BOTH else verb.on)
        taken = [word.strip(" `") for word in takes.split(",") if word]
        assert taken == [*(p.name for p in verb.parameters), *["for"] * isinstance(verb, FaultKind)]
