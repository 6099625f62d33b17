"""The text format: what the official parser reads is what was meant, whatever the text."""

import gc
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from hami_mock.vendors.exporter import Exporter, Metric, Per
from hami_mock.views.exporters.dcgm_extras import Window
from hami_mock.views.exporters.exposition import Exposition
from hami_mock.views.exporters.hami_monitor import LastWork
from hami_mock.views.exporters.pages import DcgmPage, MonitorPage
from hami_mock.views.exporters.row_texts import Pieces, RowTexts
from hami_mock.views.exporters.rows import Row, card_rows, observe
from hami_mock.views.exporters.values import VALUES
from tests.unit.builders import NODE, cards
from tests.unit.views.exporters.rig import ShownState, named, reading, samples, shown

HOSTILE = [
    'a"b',
    "a\\",
    "a\nb 1",
    "50%d",
    "%s%%",
    "{uuid}",
    "é 卡",
    "\ud800",
    "a\x00b",
    "}",
    "x" * 5000,
]


def page(*metrics: Metric) -> Exposition:
    return Exposition(Exporter(metrics, (("uuid", "{uuid}"),), (("pod", "{pod}"),), 1), NODE)


def rows(count: int = 1) -> list[Row]:
    return card_rows(observe(shown(count)))


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_card_or_a_pod_is_called_the_text_can_be_read(text: str) -> None:
    state = shown(1)
    (card,) = state.node.cards
    named_so = replace(card, model=replace(card.model, product=text), uuid=text)
    state = ShownState([named_so])
    state.hold(named_so, (text, text, text))
    work = LastWork()
    found = samples(
        DcgmPage(state, "1.2").render().decode() + MonitorPage(state, work).render().decode()
    )
    ((labels, value),) = named(found, "DCGM_FI_DEV_SM_CLOCK")
    assert value == 1380
    is_plain = text.isprintable() and len(text) <= 300
    assert (labels["pod"] == text) is is_plain
    assert (labels["modelName"] == text) is is_plain
    ((labels, _),) = named(found, "hami_vgpu_memory_used_bytes")
    assert labels["namespace"].isprintable()


def test_values_are_written_as_the_metric_says() -> None:
    text = (
        page(
            Metric("a", "power", "Power in %."),
            Metric("b", "power", "The same.", form="%f"),
            Metric("c", "power", "In mW.", scale=1000),
            Metric("d", "busy", "Rounded.", "counter"),
        )
        .render({Per.CARD: rows()})
        .decode()
    )
    lines = text.splitlines()
    assert lines[:2] == ["# HELP a Power in %.", "# TYPE a gauge"]
    assert [line.rsplit(" ", 1)[1] for line in lines[2::3]] == ["180", "180.250000", "180250", "55"]
    assert "# TYPE d counter" in lines


def test_a_metric_that_is_there_for_two_reasons_has_one_head() -> None:
    twice = [Metric("a", "one", "Both.", labels=(("kind", kind),)) for kind in "xy"]
    text = page(*twice).render({Per.CARD: rows(2)}).decode()
    assert text.count("# TYPE") == 1
    assert len(named(samples(text), "a")) == 4


def test_without_rows_there_is_no_head() -> None:
    assert page(Metric("a", "one", "Nothing.")).render({Per.CARD: []}).decode() == ""


def test_labels_are_written_once_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    original = RowTexts._write

    def counted(own: RowTexts, per: Per, row: Row, fields: Mapping[str, str]) -> Pieces:
        written.append(row.usage.container[1] if row.usage else "")
        return original(own, per, row, fields)

    monkeypatch.setattr(RowTexts, "_write", counted)
    state = shown(2)
    first, second = state.node.cards
    dcgm = DcgmPage(state, "1.2", shares=True)
    for power in (1.0, 2.0, 3.0):
        state.readings[first.uuid] = reading(first, power=power)
        assert f" {power:f}\n" in dcgm.render().decode()
    assert written == ["", ""]
    for pod in "pq":
        state.hold(second, ("ns", pod, "c"))
        assert f'pod="{pod}"' in dcgm.render().decode()
    assert written == ["", "", "p", "q"], "what is there already is kept"
    state.held.clear()
    assert "pod=" not in dcgm.render().decode()
    assert written == ["", "", "p", "q", ""], "what was gone is written anew"
    # The same UUID, another card: the configuration has changed.
    model = replace(first.model, product="Another")
    state.node = replace(state.node, cards=(replace(first, model=model), second))
    assert 'modelName="Another"' in dcgm.render().decode()


def test_what_is_kept_is_what_would_be_written_anew() -> None:
    """Containers come and go on cards; an exposition that knows nothing shows the same."""
    state, work, random = shown(3), LastWork(lambda: 0.0), Random(5)
    pages = _pages(state, work)
    for number in range(60):
        card = random.choice(state.node.cards)
        if state.held[card.uuid] and random.random() < 0.5:
            state.held[card.uuid].pop(random.randrange(len(state.held[card.uuid])))
        else:
            state.hold(card, ("ns", f"pod-{number % 7}", "main"), busy=number % 2)
        work.note(state.loads)
        for page, new in zip(pages, _pages(state, work), strict=True):
            assert page.render() == new.render()


def _pages(state: ShownState, work: LastWork) -> tuple[DcgmPage | MonitorPage, ...]:
    return (
        DcgmPage(state, "1.2"),
        DcgmPage(state, "1.2", shares=True, window=Window(state)),
        MonitorPage(state, work, has_legacy=True),
    )


def test_nothing_grows_over_ten_thousand_scrapes() -> None:
    state = shown(1)
    work = LastWork()
    pages = DcgmPage(state, "1.2", shares=True), MonitorPage(state, work, has_legacy=True)
    pods = (f"pod-{number}" for number in count(10_000_000))

    def scrape(times: int) -> None:
        for number in range(times):
            if number % 10 == 0:  # Pods come and go, and each has a name of its own.
                state.held.clear()
                state.loads.clear()
                for card in state.node.cards:
                    state.hold(card, ("ns", next(pods), "main"), busy=7)
            work.note(state.loads)
            for each in pages:
                each.render()

    def blocks() -> int:
        gc.collect()
        return sys.getallocatedblocks()

    scrape(200)
    before = blocks()
    scrape(10_000)
    assert blocks() - before < 100


def test_every_value_can_be_read_of_a_row() -> None:
    (card,) = cards(1)
    state = ShownState([card])
    state.hold(card, ("ns", "p", "c"))
    (row,) = card_rows(observe(state))
    row.idle = 3.0
    # No card has both kinds of damage.
    row.reading = replace(
        row.reading,
        remapped_correctable=0,
        remapped_uncorrectable=0,
        remap_failed=False,
        retired_correctable=0,
        retired_uncorrectable=0,
    )
    assert {name for name, read in VALUES.items() if read(row) is None} == set()
