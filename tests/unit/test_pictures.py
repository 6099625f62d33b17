"""How charts are drawn, and that pages show pictures that are there."""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kit.plotting import thinned, ticks
from tools.pictures import afternoon
from tools.pictures.charts import Line, Picture, Strip, draw, runs, stacked

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
VALUES = st.floats(-1e6, 1e6)
SERIES = st.lists(VALUES, min_size=1, max_size=60).map(
    lambda values: [(float(time), value) for time, value in enumerate(values)]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_that_a_page_shows_is_there(page: Path) -> None:
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text()):
        assert (page.parent / name).is_file(), name


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/pictures/*.svg")), ids=lambda p: p.name)
def test_a_picture_is_small_shown_somewhere_and_readable_on_dark_pages(path: Path) -> None:
    assert path.stat().st_size < 60_000
    assert "prefers-color-scheme:dark" in path.read_text()
    assert ET.parse(path).getroot().get("aria-label")
    assert any(f"pictures/{path.name})" in page.read_text() for page in PAGES)


@given(low=VALUES, span=st.floats(1e-3, 1e6), most=st.integers(3, 8))
def test_ticks_enclose_a_range_evenly(low: float, span: float, most: int) -> None:
    found = ticks(low, low + span, most)
    slack = 1e-6 * (abs(low) + span)
    assert found[0] <= low + slack
    assert found[-1] >= low + span - slack
    assert 2 <= len(found) <= most
    steps = [after - before for before, after in pairwise(found)]
    assert max(steps) == pytest.approx(min(steps), abs=slack)


def test_ticks_are_round() -> None:
    assert ticks(0, 100) == [0, 50, 100]
    assert ticks(40, 95) == [40, 60, 80, 100]


@given(SERIES, st.floats(0.01, 1e5))
def test_thinning_moves_no_point_by_more_than_it_may(
    points: list[tuple[float, float]], tolerance: float
) -> None:
    kept = thinned(points, tolerance)
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]
    for (x0, y0), (x1, y1) in pairwise(kept):
        for x, y in points:
            if x0 <= x <= x1:
                assert y == pytest.approx(
                    y0 + (y1 - y0) * (x - x0) / (x1 - x0), abs=tolerance * 1.01
                )


@given(SERIES, st.sets(st.integers(0, 59)))
def test_runs_have_all_points_and_no_gaps(
    points: list[tuple[float, float]], missing: set[int]
) -> None:
    left = [point for point in points if point[0] not in missing]
    found = [*runs(left, 1.0)]
    assert [point for run in found for point in run] == left
    assert all(b[0] - a[0] == 1 for run in found for a, b in pairwise(run))
    assert all(after[0][0] - before[-1][0] > 1 for before, after in pairwise(found))


@given(st.lists(SERIES, min_size=1, max_size=4))
def test_a_stack_is_as_high_as_the_sum(series: list[list[tuple[float, float]]]) -> None:
    found = stacked([Line("", points) for points in series])
    highest: dict[float, float] = {}
    for line, _ in found:
        highest |= dict(line.points)
    for time, value in highest.items():
        parts = [dict(points)[time] for points in series if time in dict(points)]
        assert value == pytest.approx(sum(parts), abs=1e-3)


def test_texts_are_escaped() -> None:
    strip = Strip("<a>", "&", [Line("x", [(0, 1), (60, 2)]), Line('"', [(0, 2)])])
    text = draw(Picture("<b> & co", [strip], 0, 60, {30: "<now>"}), 60)
    root = ET.fromstring(text)
    assert {"<b> & co", "<now>", '"'} <= {*root.itertext()}


def test_the_two_hours_are_the_same_every_time() -> None:
    first = [*afternoon.lines()]
    assert first == [*afternoon.lines()]
    assert first[-1] == "# EOF"
    times = {line.rsplit(" ", 1)[1] for line in first[:-1]}
    assert len(times) == afternoon.SECONDS / afternoon.SCRAPE_SECONDS + 1


@pytest.mark.parametrize(
    ("of_card", "of_container", "scale"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", "hami_container_device_utilization_ratio", 1),
        ("DCGM_FI_DEV_FB_USED", "hami_vgpu_memory_used_bytes", 2**20),
    ],
)
def test_a_card_shows_the_sum_of_its_containers_at_any_time(
    of_card: str, of_container: str, scale: int
) -> None:
    cards: Counter[tuple[str, str]] = Counter()
    containers: Counter[tuple[str, str]] = Counter()
    for line in afternoon.lines():
        found = re.match(r'(\w+){.*(?:UUID|uuid)="([^"]+)".*} (\S+) (\d+)$', line)
        if found and found[1] == of_card:
            cards[found[2], found[4]] += int(found[3]) * scale
        if found and found[1] == of_container:
            containers[found[2], found[4]] += int(found[3])
    assert containers.total() > 0
    assert cards == containers
