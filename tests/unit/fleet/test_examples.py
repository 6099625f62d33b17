"""The fleets of the documentation: they are there, and are what it says."""

import re
from pathlib import Path

import pytest

from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.plan import planned
from hami_mock.settings.settings import load_pools

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs/fleet.md").read_text()
REPORTS = {"handshakes": 33.3, "patches": 0}


@pytest.mark.parametrize("name", REPORTS)
def test_a_fleet_reports_as_often_as_it_says(name: str) -> None:
    plan = planned(Fleet("example", load_pools(str(ROOT / f"examples/fleet/{name}.yaml"))))
    assert plan["nodes"] == 1000
    assert plan["reports_per_second"] == REPORTS[name]


def test_the_documentation_names_every_fleet_that_there_is() -> None:
    named = set(re.findall(r"examples/fleet/([a-z]+)\.yaml", DOCS))
    assert named == {file.stem for file in (ROOT / "examples/fleet").iterdir()} == set(REPORTS)


def test_no_section_of_the_documentation_is_empty() -> None:
    assert not re.search(r"^#+ [^\n]*\n+## ", DOCS, re.MULTILINE)


def test_the_documentation_links_to_sections_that_there_are() -> None:
    titles = re.findall(r"^#+ (.*)$", DOCS, re.MULTILINE)
    slugs = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]+)\)", DOCS)) <= slugs


def test_every_target_has_its_figure() -> None:
    _, _, table = DOCS.partition("| target | wanted | measured | command |\n")
    rows = [line.split("|") for line in table.partition("\n\n")[0].splitlines()[1:]]
    assert len(rows) == 8
    assert all(re.search(r"[0-9]|none", row[3]) and "`" in row[4] for row in rows)
    assert "<!--" not in DOCS
