"""Fuzzing notices what it should: a harness that sees nothing finds nothing."""

import tempfile
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import traps
from tests.fuzz.mutator import Mutator
from tests.fuzz.supervisor import Goal, Supervisor
from tests.fuzz.target import Target
from tests.fuzz.worker import SIZE, Slate, Stream

FOUND = {
    "trap-hang": "hang-0",
    "trap-die": "died-3-0",
    "trap-greedy": "MemoryError-outside",
    "trap-raise": "KeyError-outside",
    "trap-log": "log-trap",
}


@pytest.mark.parametrize("trap", traps.TARGETS, ids=lambda trap: trap.name)
def test_an_input_that_is_too_much_is_found_and_saved(trap: Target, tmp_path: Path) -> None:
    goal = Goal(inputs=1, least=0, seconds=None)
    supervisor = Supervisor((trap,), goal, cases=tmp_path, cpu_seconds=0.3)
    (score,) = {id(score): score for score in supervisor.run()}.values()
    assert list(score.findings) == [FOUND[trap.name]]
    (saved,) = (tmp_path / trap.name).iterdir()
    assert saved.name == FOUND[trap.name]
    # A worker that still runs takes away what the finding doesn't need: here that is all of it.
    assert saved.read_bytes() == (b"x" if trap.name in ("trap-hang", "trap-die") else b"")


def test_a_worker_that_is_killed_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (trap,) = (each for each in traps.TARGETS if each.name == "trap-hang")
    goal, cases = Goal(inputs=1, least=0, seconds=None), tmp_path / "cases"
    for score in Supervisor((trap,), goal, cases=cases, cpu_seconds=0.3).run():
        assert score.findings
    assert [each.name for each in tmp_path.iterdir()] == ["cases"]


def inputs_of(seed: str, folder: Path) -> list[bytes]:
    path = folder / "slate"
    path.write_bytes(bytes(SIZE))
    seen: list[bytes] = []
    target = Target("seen", seen.append, (), [b'{"a": [1, "b"]}', b"x: 1"])
    Stream(target, seed, Slate(str(path))).run(300, 60)
    return seen


def test_a_seed_makes_the_same_inputs_again(tmp_path: Path) -> None:
    assert inputs_of("1", tmp_path) == inputs_of("1", tmp_path) != inputs_of("2", tmp_path)


def test_inputs_are_small_and_large_and_deep() -> None:
    mutator = Mutator(Random(1), [b"word"])
    made = [mutator.mutate(b'{"a": [1, 2, {"b": "c"}]}', b"a: b") for _ in range(3000)]
    assert len(set(made)) > 2000
    assert max(map(len, made)) > 500_000
    assert any(each.count(b"[") > 10_000 for each in made)
    assert any(b"word" in each for each in made)
