"""The page in Chromium, driven by Playwright."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.program import chromium
from tests.integration.viewers import ShownNode, nobody_asked, shown_node

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    # Loaded here: what only reads these files needs no Playwright.
    from playwright.sync_api import sync_playwright

    program = chromium()
    environment: dict[str, str | float | bool] = {**os.environ, **program.environment}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program.path, args=program.flags, env=environment
        )
        yield browser
        browser.close()


@pytest.fixture
def shown(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShownNode]:
    with shown_node(socket_folder) as found:
        monkeypatch.setattr(found.feed, "_refresh", nobody_asked)
        yield found
