"""Every input that fuzzing ever found is tried again, and so are those that it begins with.

tests/fuzz says what may come of an input; `make fuzz` looks for new ones.
"""

import gc
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import sockets
from tests.fuzz.mutator import Mutator
from tests.fuzz.table import BY_NAME, TARGETS
from tests.fuzz.target import CASES, LOGGED, Target, judge

FOUND = sorted(CASES.glob("*/*"))
DEADLY = [path for path in FOUND if path.name.startswith(("died", "hang"))]
"""What once killed its process, or took for ever."""


def name_of(path: Path) -> str:
    return f"{path.parent.name}-{path.name}"


INPUTS = [
    *(
        pytest.param(
            BY_NAME[path.parent.name], path.read_bytes(), id=f"{path.parent.name}-{path.name}"
        )
        for path in FOUND
        if path not in DEADLY
    ),
    *(
        pytest.param(target, seed, id=f"{target.name}-seed-{i}")
        for target in TARGETS
        for i, seed in enumerate(target.seeds)
    ),
]


@pytest.fixture(scope="module", autouse=True)
def closed_sockets() -> Iterator[None]:
    yield
    sockets.close()
    gc.collect()


@pytest.mark.parametrize(("target", "data"), INPUTS)
def test_an_input_of_the_fuzzing_does_no_harm(target: Target, data: bytes) -> None:
    root = logging.getLogger()
    root.addHandler(LOGGED)
    root.setLevel(logging.INFO)
    LOGGED.take()
    assert judge(target, data) is None


@pytest.mark.parametrize("path", DEADLY, ids=name_of)
def test_a_deadly_input_of_the_fuzzing_does_no_harm_any_more(path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.replay", path.parent.name, str(path)]
    root = CASES.parent.parent.parent
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=90, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_cases_are_those_of_targets_that_there_are() -> None:
    assert {path.parent.name for path in FOUND} <= BY_NAME.keys()


def test_what_the_fuzzing_makes_of_aliases_has_an_end() -> None:
    mutator = Mutator(Random(1), (), largest=1000)
    document: list[object] = ["x"]
    # Written out, it would be larger than any memory.
    for _ in range(60):
        document = [document, document]
    assert mutator._written(document) == b""
    assert mutator._written({"a": [1, None]}) == b'{"a": [1, null]}'
