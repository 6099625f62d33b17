"""The page of a what-if as people have it before them, made of the example fleet."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hami_mock.cli.main import main
from hami_mock.cli.whatif import NOT_ENOUGH

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EXAMPLES = Path(__file__).parents[2] / "examples/whatif"
WIDTHS = {"phone": 390, "tablet": 800, "desktop": 1280}
PICTURES = os.environ.get("HAMI_MOCK_PICTURES", "")
"""A folder for the picture of docs/pictures; else it is thrown away."""

_OVERLAPPING = """
() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")];
    const boxes = texts.map((text) => text.getBoundingClientRect());
    const outer = svg.getBoundingClientRect();
    boxes.forEach((a, i) => {
      if (a.left < outer.left - 1 || a.right > outer.right + 1) found.push(texts[i].textContent);
      boxes.slice(i + 1).forEach((b, j) => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3)
          found.push(texts[i].textContent + " | " + texts[i + j + 1].textContent);
      });
    });
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("whatif") / "report.html"
    workloads = [str(EXAMPLES / name) for name in ("inference.yaml", "training.yaml")]
    fleet = ["--fleet", str(EXAMPLES / "fleet.yaml")]
    assert main(["whatif", *fleet, "--report", str(file), "--workload", *workloads]) == NOT_ENOUGH
    return file


@contextmanager
def looking(browser: "Browser", file: Path, width: int, scheme: Any = "light") -> "Iterator[Page]":
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    try:
        page.goto(file.as_uri())
        yield page
        assert complaints == []
        assert requests == [file.as_uri()]
    finally:
        context.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overlaps_or_hangs_over(
    browser: "Browser", report: Path, width: str, scheme: str, tmp_path: Path
) -> None:
    with looking(browser, report, WIDTHS[width], scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
        assert page.evaluate(_OVERLAPPING) == []
        if (width, scheme) == ("desktop", "light"):
            file = Path(PICTURES or tmp_path) / "whatif.png"
            page.screenshot(
                path=file, full_page=True, clip={"x": 0, "y": 0, "width": 1280, "height": 1180}
            )
            assert file.stat().st_size > 10_000


def test_the_search_finds_pods_by_any_of_their_words(browser: "Browser", report: Path) -> None:
    with looking(browser, report, WIDTHS["desktop"]) as page:
        rows = page.locator("#refused tbody tr")
        count = rows.count()
        assert count > 1
        search = page.get_by_role("searchbox", name="Search")
        # A pod that isn't the first of its row, and a word of another column.
        search.fill("finetune-8 memory")
        assert rows.locator("visible=true").count() == 1
        assert page.get_by_role("status").inner_text() == f"1 of {count}"
        search.fill("nobody")
        assert page.get_by_role("status").inner_text() == f"0 of {count}"
        search.fill("")
        assert rows.locator("visible=true").count() == count


def test_all_names_are_there_for_who_opens_the_row(browser: "Browser", report: Path) -> None:
    with looking(browser, report, WIDTHS["phone"]) as page:
        row = page.locator("#refused tbody tr").filter(has_text="finetune-6")
        assert not row.get_by_text("finetune-9").is_visible()
        row.locator("summary").click()
        assert row.get_by_text("finetune-9").is_visible()


def test_on_paper_it_is_dark_on_light_without_a_search(browser: "Browser", report: Path) -> None:
    with looking(browser, report, WIDTHS["desktop"], "dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        assert not page.get_by_role("searchbox").is_visible()
