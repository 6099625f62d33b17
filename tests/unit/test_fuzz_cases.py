"""Every input that fuzzing ever found is tried again, and so are those that it begins with.

tests/fuzz says what may come of an input; `make fuzz` looks for new ones.
"""

import gc
import logging
from collections.abc import Iterator

import pytest

from tests.fuzz import sockets
from tests.fuzz.table import BY_NAME, TARGETS
from tests.fuzz.target import CASES, LOGGED, Target, judge

FOUND = sorted(CASES.glob("*/*"))
INPUTS = [
    *(
        pytest.param(
            BY_NAME[path.parent.name], path.read_bytes(), id=f"{path.parent.name}/{path.name}"
        )
        for path in FOUND
    ),
    *(
        pytest.param(target, seed, id=f"{target.name}/seed-{i}")
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


def test_the_cases_are_those_of_targets_that_there_are() -> None:
    assert {path.parent.name for path in FOUND} <= BY_NAME.keys()
