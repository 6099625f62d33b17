"""The fleet's page as people have it before them: tiles, what they tell, and what one can do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hami_mock.fleet.fleet import Fleet
from hami_mock.node.event_kinds import Kind
from hami_mock.node.pods import Pod
from tests.browser.test_page import PICTURES, SCRIPT, Look
from tests.integration.fleet_viewers import ShownFleet, shown_fleet
from tests.invented_fleet import LARGE, assigned_pod, break_some, invented_fleet, place, uuids, work

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SIZES = {"wide": (1600, 1000), "narrow": (400, 860)}
POSITION = """name => {
  const node = nodes[numbers.get(name)], box = node.canvas.element.getBoundingClientRect();
  return [box.left + node.x + node.canvas.size / 2, box.top + node.y + node.canvas.size / 2];
}"""
PIXELS = """name => {
  const node = nodes[numbers.get(name)], { context, size } = node.canvas;
  const scale = window.devicePixelRatio;
  const pixels = context.getImageData(node.x * scale, node.y * scale, size * scale, size * scale);
  const at = (x, y) => {
    const from = 4 * (Math.floor(y * pixels.height) * pixels.width + Math.floor(x * pixels.width));
    return [...pixels.data.slice(from, from + 4)];
  };
  return { middle: at(.5, .5), edge: at(.5, .05), all: [...pixels.data].join() };
}"""
EDGE_IS = f"([name, colour]) => ({PIXELS})(name).edge.join() === colour.join()"
COLOUR = """name => {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = paints[name] || paints.scale[name];
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
}"""
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


class FleetLook(Look):
    """A page of a fleet."""

    def pixels(self, node: str) -> Any:
        self.page.evaluate(DRAWN)
        return self.page.evaluate(PIXELS, node)

    def colour(self, name: str | int) -> list[int]:
        found: list[int] = self.page.evaluate(COLOUR, name)
        return found

    def point_at(self, node: str) -> None:
        self.page.mouse.move(*self.page.evaluate(POSITION, node))

    @property
    def details(self) -> Any:
        return self.page.locator("#node-box")

    def wait_for_mark(self, node: str, mark: int) -> None:
        self.page.wait_for_function(
            "([name, mark]) => rows[numbers.get(name) * WIDTH + 3] === mark", arg=[node, mark]
        )


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return invented_fleet(tmp_path)


@pytest.fixture
def shown(fleet: Fleet) -> Iterator[ShownFleet]:
    with shown_fleet(fleet) as found:
        yield found


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShownFleet]:
    fleet = invented_fleet(tmp_path_factory.mktemp("large"), LARGE)
    work(fleet)
    break_some(fleet)
    with shown_fleet(fleet) as found:
        yield found


@contextmanager
def looking(
    browser: "Browser",
    shown: ShownFleet,
    size: str = "wide",
    scheme: Any = "light",
    motion: Any = "reduce",
) -> Iterator[FleetLook]:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion=motion,
        has_touch=size == "narrow",
    )
    look = FleetLook(context.new_page())
    look.page.on("request", lambda request: look.requests.append(request.url))
    look.page.on("console", lambda message: look.complaints.append(message.text))
    look.page.on("pageerror", lambda error: look.complaints.append(str(error)))
    try:
        look.page.goto(shown.url)
        # On a busy machine the first look at 31,600 pods takes a while.
        look.page.get_by_text("live", exact=True).wait_for(timeout=60_000)
        yield look
        # Whoever reads pixels back is told that it is slow: these tests do.
        assert [each for each in look.complaints if "willReadFrequently" not in each] == []
        assert all(url.startswith(shown.url) for url in look.requests)
    finally:
        context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_five_thousand_tiles(
    browser: "Browser", large: ShownFleet, tmp_path: Path, size: str, scheme: str
) -> None:
    with looking(browser, large, size, scheme) as look:
        look.wait_for_text("41 not ready")
        assert look.page.evaluate("nodes.length") == 5000
        assert look.pixels("a100-480")["edge"] == look.colour("fault")
        if size == "wide":
            # All of it is on the screen at once.
            assert look.page.evaluate("document.documentElement.scrollHeight") <= SIZES[size][1]
            look.point_at("a100-3")
            look.details.get_by_text("default/trainer-", exact=False).first.wait_for()
        assert look.hangs_over == 0
        look.page.screenshot(path=Path(PICTURES or tmp_path) / f"fleet-{size}-{scheme}.png")


def test_a_tile_is_coloured_by_what_is_allocated(browser: "Browser", shown: ShownFleet) -> None:
    for node, memory, cores in (("t4-1", 15360, 10), ("t4-2", 2 * 15360, 200), ("t4-3", 300, 0)):
        shown.call(place, shown.fleet, node, assigned_pod("p", ("GPU-1", memory, cores)))
    with looking(browser, shown) as look:
        look.page.wait_for_function("() => rows[25 * WIDTH] > 0")
        assert look.pixels("t4-0")["middle"] == look.colour("empty")
        assert look.pixels("t4-1")["middle"] == look.colour(50)
        assert look.pixels("t4-2")["middle"] == look.colour(100)
        look.page.get_by_label("Colour").select_option("cores")
        assert look.pixels("t4-1")["middle"] == look.colour(5)
        assert look.pixels("t4-3")["middle"] == look.colour("empty")
        look.page.get_by_label("Colour").select_option("slots")
        assert look.pixels("t4-3")["middle"] == look.colour(5)


def test_every_condition_looks_different(browser: "Browser", shown: ShownFleet) -> None:
    shown.act("fail", "t4-1:0")
    shown.act("degrade", "t4-2:0")
    shown.fleet.members["t4-3"].is_ready = False
    shown.fleet.members["t4-4"].is_there = False
    with looking(browser, shown) as look:
        look.wait_for_mark("t4-4", 0)
        looks = [look.pixels(f"t4-{number}")["all"] for number in range(5)]
        assert len(set(looks)) == 5
        assert look.pixels("t4-5")["all"] == looks[0]
        # What is wrong leaves the allocation to be seen.
        assert look.pixels("t4-1")["middle"] == look.colour("empty")


def test_faults_blink_unless_somebody_wants_it_calm(browser: "Browser", shown: ShownFleet) -> None:
    shown.act("fail", "t4-1:0")
    with looking(browser, shown, motion="no-preference") as look:
        look.wait_for_mark("t4-1", 11)
        for script in (EDGE_IS, f"(...all) => !({EDGE_IS})(...all)", EDGE_IS):
            look.page.wait_for_function(script, arg=["t4-1", look.colour("fault")])
    with looking(browser, shown, motion="reduce") as look:
        look.wait_for_mark("t4-1", 11)
        lit = look.page.evaluate(
            "new Promise(done => { const seen = [];"
            " const timer = setInterval(() => { seen.push(isLit);"
            " if (seen.length === 30) { clearInterval(timer); done(seen); } }, 50); })"
        )
        assert set(lit) == {True}


def test_pointing_tells_of_a_node_and_a_click_holds_it(
    browser: "Browser", shown: ShownFleet
) -> None:
    first, *_ = uuids(shown.fleet, "a100-17")
    pod = assigned_pod("trainer", (first, 40960, 50))
    shown.call(place, shown.fleet, "a100-17", pod)
    shown.act("fail", "a100-17:1", xid=79)
    with looking(browser, shown) as look:
        look.point_at("a100-17")
        look.details.get_by_text("default/trainer").wait_for()
        told = look.details.inner_text()
        for text in (
            "a100-17",
            "a100-r2, eu-1a",
            "40.0 of 80.0 GiB, 50\u00a0%",
            "nvidia/1",
            "unhealthy",
        ):
            assert text in told
        assert "Xid 79 (GPU has fallen off the bus)" in told
        look.page.mouse.click(*look.page.evaluate(POSITION, "a100-17"))
        look.point_at("a100-3")
        assert look.details.get_by_role("heading", name="a100-17").is_visible()
        # What is held is kept up.
        shown.call(place, shown.fleet, "a100-17", assigned_pod("second", (first, 1024, 1)))
        look.details.get_by_text("default/second").wait_for()
        look.page.keyboard.press("Escape")
        look.details.get_by_role("heading", name="Node", exact=True).wait_for()
        look.point_at("a100-3")
        look.details.get_by_role("heading", name="a100-3", exact=True).wait_for()


def test_a_tap_opens_what_there_is_to_know_and_a_button_closes_it(
    browser: "Browser", shown: ShownFleet
) -> None:
    with looking(browser, shown, "narrow") as look:
        assert not look.details.is_visible()
        look.page.locator("canvas.tiles").first.scroll_into_view_if_needed()
        look.page.touchscreen.tap(*look.page.evaluate(POSITION, "a100-1"))
        look.details.get_by_text("8 cards").wait_for()
        assert look.details.get_by_role("heading", name="a100-1", exact=True).is_visible()
        look.details.get_by_role("button", name="Close").click()
        assert not look.details.is_visible()
        assert look.hangs_over == 0


def test_arrow_keys_walk_through_the_tiles(browser: "Browser", shown: ShownFleet) -> None:
    with looking(browser, shown) as look:
        for _ in range(20):
            look.page.keyboard.press("Tab")
            if look.page.evaluate("document.activeElement.className") == "tiles":
                break
        label = look.page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert label.startswith("a100, eu-1a: 16 nodes in 2 racks")

        def chosen() -> str:
            name: str = look.page.evaluate("nodes[chosen].name")
            return name

        walked = [chosen()]
        for key in ("ArrowRight", "End", "ArrowLeft", "Home", "ArrowDown", "ArrowUp"):
            look.page.keyboard.press(key)
            walked.append(chosen())
        below = look.page.evaluate("nodes[beside(0, 15, 0, 1)].name")
        assert walked == ["a100-0", "a100-1", "a100-23", "a100-22", "a100-0", below, "a100-0"]
        assert below != "a100-0"
        look.details.get_by_text("8 cards").wait_for()


FILTERS = {
    "a100-1*": 11,
    "eu-1b": 8,
    "a100-r2": 8,
    "t4": 6,
    "A100-SXM4": 24,
    "is:failed": 8,
    "is:fault eu-1b": 8,
    "is:fault eu-1a": 0,
    "is:notready": 1,
    ">80": 1,
    "t4, <20": 5,
    "a100-1[": 0,
}


def test_a_filter_leaves_what_fits(browser: "Browser", shown: ShownFleet) -> None:
    shown.act("fail", "rack=a100-r1")
    shown.fleet.members["t4-5"].is_ready = False
    shown.call(place, shown.fleet, "t4-0", assigned_pod("p", ("GPU-1", 30000, 0)))
    with looking(browser, shown) as look:
        look.wait_for_mark("t4-5", 1)
        before = look.pixels("t4-1")["all"]
        for text, count in FILTERS.items():
            look.page.get_by_label("Filter").fill(text)
            look.page.get_by_text(f"{count} of 30 nodes", exact=True).wait_for()
            fits = look.page.evaluate("fits[numbers.get('t4-1')]")
            assert (look.pixels("t4-1")["all"] == before) == fits
        look.page.get_by_label("Filter").fill("")
        assert look.pixels("t4-1")["all"] == before


def test_what_changes_is_drawn_and_summed_at_once(browser: "Browser", shown: ShownFleet) -> None:
    with looking(browser, shown) as look:
        page = look.page
        assert "24 nodes with 8 x A100-SXM4-80GB · 24 ready" in page.inner_text("#pools")
        shown.act("fail", "rack=a100-r1", reason="no power")
        page.get_by_text("128 of 192 cards usable").wait_for()
        assert page.title() == "8 with faults, demo: hami-mock fleet"
        assert page.get_by_role("log").get_by_text("no power").is_visible()
        assert look.pixels("a100-8")["edge"] == look.colour("fault")
        memory = page.get_by_role("region", name="a100").get_by_role("meter", name="Memory")
        assert memory.get_attribute("aria-valuenow") == "0"
        shown.call(place, shown.fleet, "a100-0", assigned_pod("p", ("GPU-1", 24 * 81920, 0)))
        page.get_by_text("1 pod", exact=False).first.wait_for()
        assert memory.get_attribute("aria-valuenow") == "13"
        shown.act("recover", "rack=a100-r1")
        page.get_by_text("192 cards · ").wait_for()
        assert page.title() == "demo: hami-mock fleet"
        shown.call(shown.fleet.scale, "t4", 8)
        page.get_by_text("8 nodes with 2 x T4").wait_for()


def test_paused_it_stands_still_and_catches_up_afterwards(
    browser: "Browser", shown: ShownFleet
) -> None:
    with looking(browser, shown) as look:
        look.page.get_by_role("button", name="Pause").click()
        look.page.get_by_text("paused", exact=True).wait_for()
        shown.act("fail", "t4-1:0")
        look.wait_for_mark("t4-1", 11)
        assert look.pixels("t4-1")["edge"] != look.colour("fault")
        look.page.get_by_role("button", name="Resume").click()
        look.page.get_by_text("1 with faults").first.wait_for()
        assert look.pixels("t4-1")["edge"] == look.colour("fault")


def test_what_others_call_things_stays_text(browser: "Browser", shown: ShownFleet) -> None:
    shown.call(place, shown.fleet, "t4-1", Pod("ns", SCRIPT, containers=("c",)))
    with looking(browser, shown) as look:
        shown.call(shown.fleet.events.add, Kind.XID, SCRIPT, SCRIPT)
        look.page.get_by_role("log").get_by_text("<script>").first.wait_for()
        look.point_at("t4-1")
        look.details.get_by_text("<script>").wait_for()
        assert look.page.locator("img, main script").count() == 0
        assert look.page.title() == "demo: hami-mock fleet"


def test_it_says_that_the_process_is_away_and_comes_back_by_itself(
    browser: "Browser", fleet: Fleet
) -> None:
    with shown_fleet(fleet) as shown:
        address = "{}:{}".format(*shown.address)
        context = browser.new_context()
        page = context.new_page()
        page.goto(shown.url)
        page.get_by_text("live", exact=True).wait_for()
    page.get_by_text("no connection to the fleet's process: trying again").wait_for()
    fleet.act("fail", fleet.find(["t4-1"]), {"reason": "after the restart"})
    with shown_fleet(fleet, address):
        page.get_by_text("after the restart").wait_for(timeout=20_000)
        page.get_by_text("live", exact=True).wait_for()
        context.close()
