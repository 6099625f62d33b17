"""docs/reliability.md names tests that there are, and all targets of the fuzzing."""

import re
from pathlib import Path

import pytest

from tests.fuzz.table import TARGETS

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs" / "reliability.md").read_text()
FAULTS = PAGE.partition("<!-- faults -->")[2].partition("<!-- end of faults -->")[0]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|")) for line in FAULTS.splitlines()[3:]
]
NAMED = [row for row in ROWS if not row[0].startswith("**")]


def test_there_are_rows_for_every_kind_of_fault() -> None:
    kinds = {row[0].strip("*") for row in ROWS if row[0].startswith("**")}
    assert kinds >= {"Kubelet", "Sockets", "Folder", "Disk", "Clock", "API server", "Signals"}
    assert len(NAMED) > 40


@pytest.mark.parametrize("row", NAMED, ids=lambda row: row[-1])
def test_every_promise_names_a_test_that_there_is(row: tuple[str, ...]) -> None:
    _, promise, named = row
    found = re.fullmatch(r"`(test_\w+\.py)::(test_\w+)`", named)
    assert promise
    assert found
    file, name = found.groups()
    pattern = re.compile(rf"^(async )?def {name}\(", re.MULTILINE)
    assert [path for path in TESTS.rglob(file) if pattern.search(path.read_text())]


def test_all_targets_of_the_fuzzing_are_listed() -> None:
    table = PAGE.partition("| what | targets |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`([a-z-]+)`", table)) == sorted(target.name for target in TARGETS)
