"""Charts are read back from their SVG: where things stand, and what they say."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.whatif.charts import WIDTH, Axis, Bar, Series, bar_chart, heat_map, line_chart

HOSTILE = '<script>alert("1")</script>&\x1b[31m'
COUNTS = st.floats(0, 1e9, allow_nan=False)
X, Y = Axis("pods", is_whole=True), Axis("%", most=100.0)


def drawn(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(svg: str) -> list[str]:
    return [text for text in drawn(svg).itertext() if text.strip()]


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]


def lines(svg: str) -> list[list[tuple[float, float]]]:
    """The points of each line, without the ones of the legend."""
    found = drawn(svg).iterfind(".//g/path")
    return [places(path.get("d", "")) for path in found]


def test_a_line_goes_from_corner_to_corner_of_its_axes() -> None:
    svg = line_chart("full", X, Y, [Series("a", [(0, 0), (50, 50), (100, 100)])])
    (first, *_, last), *_ = lines(svg)
    assert first[0] < last[0] <= WIDTH
    assert first[1] > last[1]
    # Both axes have their ends as numbers, and their names.
    assert {"0", "100", "pods", "%"} <= {*texts(svg)}


def test_a_straight_line_has_two_points_and_a_measured_one_all_of_its_dots() -> None:
    points = [(float(x), float(x)) for x in range(11)]
    svg = line_chart("t", X, Y, [Series("thin", points), Series("dots", points, 1, has_dots=True)])
    assert [len(line) for line in lines(svg)] == [2, 2]
    assert len(drawn(svg).findall(".//circle")) == 11
    assert "dots, 10: 10" in texts(svg)


def test_what_is_above_the_axis_is_cut_off_and_not_drawn_over_the_page() -> None:
    svg = line_chart("cut", X, Y, [Series("much", [(0, 0), (10, 300)])])
    assert min(y for _, y in lines(svg)[0]) < 0
    group = drawn(svg).find(".//g")
    assert group is not None
    assert group.get("clip-path") == f"url(#{drawn(svg).findall('.//clipPath')[0].get('id')})"


def test_few_of_something_have_whole_numbers_on_their_axis() -> None:
    svg = line_chart("t", X, Axis("nodes", is_whole=True), [Series("a", [(0, 0), (3, 2)])])
    numbers = [text for text in texts(svg) if re.fullmatch(r"[\d.]+", text)]
    assert numbers == ["0", "1", "2", "0", "1", "2", "3"]


@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=30))
def test_every_line_stays_between_its_axes(points: list[tuple[float, float]]) -> None:
    series = [Series("a", sorted(points))]
    svg = line_chart("any", Axis("x"), Axis("y"), series)
    for x, y in (point for line in lines(svg) for point in line):
        assert 0 <= x <= WIDTH
        assert 0 <= y <= float(drawn(svg).get("viewBox", "").split()[3])


@pytest.mark.parametrize("count", range(1, 6))
def test_names_of_lines_never_overlap(count: int) -> None:
    series = [Series("a name that is long " + "x" * n, [(0, 0)], n) for n in range(count)]
    root = drawn(line_chart("t", X, Y, series))
    marks = [path for path in root.findall("path") if "line" in path.get("class", "")]
    spots = [tuple(map(float, re.findall(r"[\d.]+", path.get("d", ""))[:2])) for path in marks]
    assert len(spots) == count
    for (x, y), (later, below) in pairwise(spots):
        assert below > y or later - x > 30 + 6 * len("a name that is long ")


def test_a_bar_is_as_long_as_its_share_and_idle_lies_behind_it() -> None:
    root = drawn(bar_chart("b", [Bar("memory", 0.5, "50 %", idle=0.25)]))
    track, fill, idle = root.findall(".//rect")
    whole = float(track.get("width", ""))
    assert float(fill.get("width", "")) == pytest.approx(whole / 2, abs=0.1)
    assert float(idle.get("width", "")) == pytest.approx(whole / 4, abs=0.1)
    assert float(idle.get("x", "")) == pytest.approx(float(fill.get("x", "")) + whole / 2, abs=0.1)


@given(st.floats(-1, 3), st.floats(0, 3))
def test_no_bar_is_longer_than_its_track(share: float, idle: float) -> None:
    track, *others = drawn(bar_chart("b", [Bar("x", share, "?", idle)])).findall(".//rect")
    end = float(track.get("x", "")) + float(track.get("width", ""))
    assert all(
        float(each.get("x", "")) + float(each.get("width", "")) <= end + 0.11 for each in others
    )
    assert all(float(each.get("width", "")) >= 0 for each in others)


def test_a_long_name_is_shortened_and_whole_where_one_points_at_it() -> None:
    name = "a-pool-with-a-name-that-is-far-too-long-for-its-bar"
    found = texts(bar_chart("b", [Bar(name, 0.5, "half")]))
    assert f"{name}: half" in found
    assert name not in found
    assert any("…" in text and text.startswith("a-pool") for text in found)


def test_a_cell_of_a_heat_map_stands_at_its_place_and_says_its_number() -> None:
    svg = heat_map("h", "cores", "memory", ["0", "50", "100"], [[0, 0, 0], [7, 0, 0], [0, 0, 1200]])
    shown = {
        (cell.findtext("title"), cell.findtext("text")): cell.find("rect")
        for cell in drawn(svg).findall("g")
        if cell.findtext("text")
    }
    assert set(shown) == {
        ("cores 0, memory 50: 7", "7"),
        ("cores 100, memory 100: 1,200", "1.2k"),
    }
    low, high = shown.values()
    assert low is not None
    assert high is not None
    assert float(low.get("x", "")) < float(high.get("x", ""))
    assert float(low.get("y", "")) > float(high.get("y", ""))


def test_more_is_darker() -> None:
    cells = [[0, 1, 25, 100], [0] * 4, [0] * 4, [0] * 4]
    found = drawn(heat_map("h", "x", "y", ["a", "b", "c", "d"], cells)).findall("g")[:4]
    shades = [each.get("class", "") for each in found]
    assert shades == ["cell h0", "cell h1", "cell h3", "cell h5"]


def test_what_others_wrote_is_escaped_everywhere() -> None:
    series = [Series(HOSTILE, [(0, 0), (1, 1)], has_dots=True)]
    for svg in (
        line_chart(HOSTILE, Axis(HOSTILE), Axis(HOSTILE), series),
        bar_chart(HOSTILE, [Bar(HOSTILE, 0.5, HOSTILE)]),
        heat_map(HOSTILE, HOSTILE, HOSTILE, [HOSTILE], [[1]]),
    ):
        assert "<script" not in svg
        assert "\x1b" not in svg
        assert drawn(svg).findall(".//script") == []
