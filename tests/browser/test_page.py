"""The page as people have it before them: what it shows, loads, says and lets them do."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hami_mock.faults import scenario_reader
from hami_mock.node.sizing import Node
from hami_mock.views.deviceplugin.lifecycle import Phase
from hami_mock.views.page import snapshot
from tests.integration.viewers import ShownNode, shown_node
from tests.invented import WORK, Work, invent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
PICTURES = os.environ.get("HAMI_MOCK_PICTURES", "")
"""A folder for the pictures of docs/pictures, where pngquant makes them small; else they are thrown
away."""
SCENARIO = """
name: drill
seed: 7
steps:
  - {at: 0s, lose: ascend/1, for: 2m}
  - {at: 3m, recover: all}
"""
SCRIPT = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


@dataclass
class Look:
    """A page, and all that it loaded or complained about."""

    page: "Page"
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def hangs_over(self) -> int:
        """By how many pixels the page is wider than the screen."""
        script = "document.documentElement.scrollWidth - innerWidth"
        pixels: int = self.page.evaluate(script)
        return pixels

    def tile(self, name: str) -> Any:
        return self.page.get_by_role("listitem", name=name, exact=True)

    def wait_for_text(self, text: str) -> None:
        self.page.get_by_text(text).first.wait_for(timeout=10_000)


@contextmanager
def looking(
    browser: "Browser", shown: ShownNode, size: str = "desktop", scheme: Any = "light"
) -> Iterator[Look]:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    look = Look(context.new_page())
    look.page.on("request", lambda request: look.requests.append(request.url))
    look.page.on("console", lambda message: look.complaints.append(message.text))
    look.page.on("pageerror", lambda error: look.complaints.append(str(error)))
    try:
        look.page.goto(shown.url)
        look.wait_for_text("live")
        yield look
        assert look.complaints == []
        assert set(look.requests) <= {f"{shown.url}/", f"{shown.url}/events"}
    finally:
        context.close()


def worked(shown: ShownNode, work: Work = WORK) -> None:
    """Let a while go by on a node where all is well."""
    for plugin in shown.agent.agent.plugins:
        plugin.phase, plugin.reason = Phase.WATCHED, ""
    shown.agent.call(invent, shown.state, 0.0, work)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures(  # noqa: PLR0917
    browser: "Browser",
    shown: ShownNode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: str,
    scheme: str,
) -> None:
    moments = [time.time() - 300.0]
    monkeypatch.setattr(snapshot, "time", SimpleNamespace(time=lambda: moments[-1]))
    worked(shown)
    scenario = scenario_reader.parse(SCENARIO, "drill.yaml")
    shown.agent.call(shown.agent.agent.stage.play, scenario, 7)
    with looking(browser, shown, size, scheme) as look:
        for moment in range(1, 21):
            moments.append(moments[-1] + 15)
            shown.agent.call(invent, shown.state, float(moment))
            busy = shown.state.readings[shown.state.node.cards[1].uuid].busy
            look.tile("nvidia/1").get_by_text(f"{busy:.0f} %", exact=True).first.wait_for()
        shown.agent.act("fail", "nvidia/1", xid=79)
        look.wait_for_text("CardFailed")
        file = Path(PICTURES or tmp_path) / f"page-{size}-{scheme}.png"
        look.page.screenshot(path=file)
        assert look.hangs_over == 0


@pytest.mark.parametrize("size", SIZES)
def test_a_card_fails_and_recovers_while_somebody_clicks_through_the_page(
    browser: "Browser", shown: ShownNode, size: str
) -> None:
    worked(shown)
    cards = shown.state.node.cards
    with looking(browser, shown, size) as look:
        page, banner, log = look.page, look.page.get_by_role("banner"), look.page.get_by_role("log")
        card = look.tile("nvidia/0")
        assert card.get_by_text("healthy", exact=True).is_visible()
        for each in cards:
            look.tile(each.name).get_by_text("Details").click()
            assert look.tile(each.name).get_by_text(each.uuid).is_visible()

        shown.agent.act("fail", "nvidia/0", xid=79)
        card.get_by_text("unhealthy", exact=True).wait_for()
        assert card.get_by_text("Xid 79 (GPU has fallen off the bus)").is_visible()
        assert log.get_by_text("CardFailed").is_visible()
        assert "7 of 8 cards healthy" in banner.inner_text()
        assert page.title().startswith("1 unhealthy, n1")
        # What was opened stays open, and what is closed now stays closed.
        assert card.get_by_text(cards[0].uuid).is_visible()
        card.get_by_text("Details").click()
        log.click()

        page.get_by_role("button", name="Pause").click()
        page.get_by_role("status").get_by_text("paused").wait_for()
        shown.agent.act("recover", "nvidia/0")
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("status").get_by_text("live").wait_for()
        card.get_by_text("healthy", exact=True).wait_for()
        assert log.get_by_text("CardRecovered").is_visible()
        assert "8 of 8 cards healthy" in banner.inner_text()
        assert page.title() == "n1: hami-mock"
        assert not card.get_by_text(cards[0].uuid).is_visible()

        shown.agent.act("lose", "mlu/1")
        look.tile("mlu/1").get_by_text("lost", exact=True).wait_for()
        assert look.hangs_over == 0


def test_bars_say_in_words_what_they_show(browser: "Browser", shown: ShownNode) -> None:
    worked(shown)
    with looking(browser, shown) as look:
        card = look.tile("nvidia/1")
        memory = card.get_by_role("meter", name="Memory")
        assert memory.get_attribute("aria-valuetext") == "23.0 of 32.0 GiB"
        assert memory.get_attribute("aria-valuenow") == "72"
        line = card.get_by_role("img", name="Temperature over time").get_attribute("aria-label")
        assert line is not None
        assert " °C now, between " in line
        containers = card.get_by_role("list", name="Containers on this card")
        assert "serving/llm-7d9c5b7c4-x2x9k/server" in containers.inner_text()


def test_a_pod_has_one_colour_on_all_cards(browser: "Browser", shown: ShownNode) -> None:
    worked(shown)
    with looking(browser, shown) as look:
        script = "dots => dots.map(dot => getComputedStyle(dot).backgroundColor)"
        colours = [
            look.tile(name).locator(".dot").evaluate_all(script)
            for name in ("nvidia/0", "nvidia/1")
        ]
        assert colours[0] == [colours[1][0]] * 2
        assert colours[1][0] != colours[1][1]


def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    browser: "Browser", shown: ShownNode
) -> None:
    worked(shown)
    with looking(browser, shown) as look:
        seen = []
        for _ in range(11):
            look.page.keyboard.press("Tab")
            focused = look.page.evaluate(
                "[document.activeElement.getAttribute('aria-label')"
                " || document.activeElement.textContent.slice(0, 20),"
                " getComputedStyle(document.activeElement).outlineStyle]"
            )
            seen.append(focused[0])
            assert focused[1] == "solid"
            if focused[0] == "Details of nvidia/0":
                look.page.keyboard.press("Enter")
                assert look.page.get_by_text(shown.state.node.cards[0].uuid).is_visible()
        assert seen[:3] == ["Skip to the cards", "Pause", "Details of nvidia/0"]
        assert seen[-2] == "Details of ascend/1"
        # A list that scrolls can be scrolled.
        assert look.page.evaluate("document.activeElement.getAttribute('role')") == "log"


def test_paused_it_stands_still_and_catches_up_afterwards(
    browser: "Browser", shown: ShownNode
) -> None:
    worked(shown)
    with looking(browser, shown) as look:
        look.page.get_by_role("button", name="Pause").click()
        look.page.get_by_role("status").get_by_text("paused").wait_for()
        shown.agent.act("fail", "nvidia/0")
        shown.event("a later one")
        look.page.wait_for_timeout(1500)
        assert look.tile("nvidia/0").get_by_text("healthy", exact=True).is_visible()
        look.page.get_by_role("button", name="Resume").click()
        look.tile("nvidia/0").get_by_text("unhealthy", exact=True).wait_for()


def test_what_others_call_things_stays_text(browser: "Browser", shown: ShownNode) -> None:
    card = shown.state.node.cards[0]
    odd = replace(card, uuid=SCRIPT, model=replace(card.model, name=SCRIPT))
    node: Node = replace(shown.state.node, cards=(odd, *shown.state.node.cards[1:]))
    shown.agent.call(shown.state.change, node)
    with looking(browser, shown) as look:
        shown.event(SCRIPT)
        look.page.get_by_role("log").get_by_text(SCRIPT).wait_for()
        look.tile("nvidia/0").get_by_text("Details").click()
        assert look.tile("nvidia/0").get_by_text(SCRIPT).count() == 2
        assert look.page.locator("img, main script").count() == 0
        assert look.page.title() == "n1: hami-mock"


def test_it_says_that_the_agent_is_away_and_comes_back_by_itself(
    browser: "Browser", socket_folder: Path
) -> None:
    with shown_node(socket_folder) as shown:
        address = "{}:{}".format(*shown.address)
        context = browser.new_context()
        page = context.new_page()
        page.goto(shown.url)
        page.get_by_text("live", exact=True).wait_for()
    page.get_by_text("no connection to the agent: trying again").wait_for()
    with shown_node(socket_folder, http_listen=address) as again:
        again.event("after the restart")
        page.get_by_text("after the restart").wait_for(timeout=20_000)
        page.get_by_text("live", exact=True).wait_for()
        context.close()
