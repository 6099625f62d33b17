"""The page in Debian's Chromium, driven by Playwright. Without these it is skipped."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.viewers import ShownNode, nobody_asked, shown_node

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright isn't installed: requirements/browser.txt has it"
    )
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    # As root, as in most containers, its sandbox refuses to start.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def shown(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShownNode]:
    with shown_node(socket_folder) as found:
        monkeypatch.setattr(found.feed, "_refresh", nobody_asked)
        yield found
