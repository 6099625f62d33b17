"""Draw docs/pictures/fleet-page.png: the live page of a fleet of 5,000 nodes in Chromium."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.program import chromium
from tests.integration.fleet_viewers import shown_fleet
from tests.invented_fleet import LARGE, break_some, invented_fleet, work
from tools.pictures.palette import with_palette

FILE = Path("docs/pictures/fleet-page.png")
_SIZE = {"width": 1500, "height": 960}


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="hami-mock-pictures-") as folder:
        fleet = invented_fleet(Path(folder), LARGE)
    work(fleet)
    break_some(fleet)
    program = chromium()
    with shown_fleet(fleet) as shown, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program.path,
            args=program.flags,
            env={**os.environ, **program.environment},
        )
        page = browser.new_page(viewport=_SIZE, color_scheme="light", reduced_motion="reduce")
        page.goto(shown.url)
        page.get_by_text("live", exact=True).wait_for()
        script = "choose(numbers.get('a100-480'), true)"
        page.evaluate(script)
        page.get_by_role("heading", name="8 cards", exact=True).wait_for()
        FILE.write_bytes(with_palette(page.screenshot()))
        browser.close()
    print(f"{FILE}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
