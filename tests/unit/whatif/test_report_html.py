"""The page, read back by Python's parser: what is in it, and what it may load."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from hami_mock.whatif import report_html
from hami_mock.whatif.outcome import Amounts, Fullest
from hami_mock.whatif.report import Answers, document
from hami_mock.whatif.report_html import MOST_NAMES, MOST_ROWS, page
from tests.unit.whatif.outcomes import (
    ASKED,
    PLACEMENTS,
    PURCHASE,
    REFUSALS,
    USELESS_PURCHASE,
    moments,
    outcome,
    refusal,
)

SPREAD = outcome([*PLACEMENTS, *PLACEMENTS[:2]], REFUSALS[:1], "spread")
REPORT = document(ASKED, Answers((outcome(), SPREAD), (PURCHASE, USELESS_PURCHASE)))
CHARTS = {"allocated", "fragmentation", "stranded", "heat", "reasons", "purchase", "policies"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;${title}"
_EMPTY = {"meta", "link", "input"}


@dataclass
class Read(HTMLParser):
    """A page's tags with their attributes, its texts by the section they are in, and its cells."""

    tags: list[tuple[str, Mapping[str, str | None]]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, list[list[str]]] = field(default_factory=dict)
    pictures: dict[str, int] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    _section: str = "top"
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _EMPTY:
            self._open.append(tag)
        if tag == "section":
            self._section = dict(attrs)["id"] or ""
        if tag == "svg":
            self.pictures[self._section] = self.pictures.get(self._section, 0) + 1
        if tag == "tr":
            self.rows.setdefault(self._section, []).append([])
        if tag in ("td", "th"):
            self.rows[self._section][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> in {self._section}"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.raw[self._open[-1]] = data
            return
        if data.strip():
            self.texts.setdefault(self._section, []).append(data)
        if {"td", "th"} & {*self._open}:
            self.rows[self._section][-1][-1] += data


def read(text: str) -> Read:
    found = Read()
    found.feed(text)
    found.close()
    assert found._open == []
    return found


PAGE = read(page(REPORT))


def test_all_charts_are_there() -> None:
    assert PAGE.pictures.keys() >= CHARTS
    # One for each pool.
    assert PAGE.pictures["pools"] == len(REPORT["pools"])
    pictures = [named for tag, named in PAGE.tags if tag == "svg" and "aria-hidden" not in named]
    assert all(named["role"] == "img" and named["aria-label"] for named in pictures)


def test_nothing_is_loaded_from_anywhere() -> None:
    for tag, named in PAGE.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "srcset", "action", "style"} & named.keys(), (tag, named)
        assert not any(name.startswith("on") for name in named)
    assert not re.search(r"https?://|@import|url\((?!#)", page(REPORT))


def test_only_its_own_script_and_style_run() -> None:
    policy = next(named for _, named in PAGE.tags if named.get("http-equiv"))["content"] or ""
    assert policy.startswith("default-src 'none';")
    for tag, text in PAGE.raw.items():
        own = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{own}'" in policy


def test_names_are_unique_and_titles_name_their_sections() -> None:
    ids = [named["id"] for _, named in PAGE.tags if "id" in named]
    assert len(ids) == len({*ids})
    assert {named["aria-labelledby"] for tag, named in PAGE.tags if tag == "section"} <= {*ids}


def test_the_numbers_are_those_of_the_json() -> None:
    assert PAGE.texts["top"][2] == "4 of 7 pods fit; 3 don't: 2 for card memory, 1 for CPU."
    figures = PAGE.texts["top"][4:]
    shown = dict(zip(figures[::2], figures[1::2], strict=False))
    assert shown["pods fit"] == str(REPORT["answer"]["fit"])
    assert shown["don't fit"] == str(REPORT["answer"]["refused"])
    assert shown["card memory allocated"] == "50 %"
    assert shown["CPU allocated"] == "22 %"
    assert [row[0] for row in PAGE.rows["purchase"][1:]] == ["a100", "cpu"]
    assert PAGE.rows["purchase"][1] == ["a100", "2", "7", "3", "yes"]
    assert [row[:2] for row in PAGE.rows["policies"][1:]] == [["binpack", "4"], ["spread", "6"]]
    assert "2 (67 %)" in PAGE.texts["reasons"]
    heat = sum(
        int(text.rsplit(": ", 1)[1].replace(",", ""))
        for text in PAGE.texts["heat"]
        if re.search(r"free memory, % \d+: ", text)
    )
    assert heat == sum(map(sum, REPORT["heat"]["cards"])) == 2
    for bought, fitted in REPORT["purchases"][0]["curve"]:
        assert f"a100, {bought}: {fitted}" in PAGE.texts["purchase"]
    assert "card memory: 80 GiB of 160 GiB" in PAGE.texts["pools"]
    header, first, *_, last = PAGE.rows["pools"]
    assert (header[1], first[0], first[1]) == ("card memory", "a100", "80 GiB of 160 GiB")
    assert header[8:] == [
        "card memory fragmented", "card cores fragmented", "slots fragmented",
        "MIG slices fragmented", "useless memory",
    ]  # fmt: skip
    assert first[8:] == ["0 %", "0 %", "38 %", "-", "0 MiB"]
    assert last[0] == "all"


def test_the_table_has_each_refused_pod_once() -> None:
    rows = PAGE.rows["refused"]
    assert rows[0] == ["pods", "names", "of", "asks for", "lack", "nodes, by their reasons"]
    assert sum(int(row[0]) for row in rows[1:]) == len(REPORT["refused"])
    names = " ".join(row[1] for row in rows[1:])
    assert all(each["pod"] in names for each in REPORT["refused"])
    assert any(tag == "input" and named["type"] == "search" for tag, named in PAGE.tags)


def test_pods_that_are_alike_share_a_row_which_has_all_their_names() -> None:
    alike = [refusal(n, {"Insufficient cpu": 2}, f"web-{n}") for n in range(MOST_NAMES + 5)]
    found = read(page(document(ASKED, Answers((outcome(refusals=alike),)))))
    (row,) = found.rows["refused"][1:]
    assert row[0] == f"{MOST_NAMES + 5:,}"
    assert f"web-{MOST_NAMES}," not in row[1]
    assert row[1].endswith(f"web-{MOST_NAMES} and 4 more")


def test_a_page_doesn_t_list_more_kinds_than_browsers_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_html, "MOST_ROWS", 3)
    assert MOST_ROWS > 3
    unlike = [refusal(n, {"Insufficient cpu": n + 1}) for n in range(5)]
    found = read(page(document(ASKED, Answers((outcome(refusals=unlike),)))))
    assert len(found.rows["refused"]) == 1 + 3
    assert "2 more kinds are in the JSON (-o json)." in found.texts["refused"]


def test_what_others_wrote_is_text_wherever_it_stands() -> None:
    one = refusal(4, {HOSTILE: 3}, HOSTILE)._replace(owner=HOSTILE, asks=HOSTILE)
    pool = replace(outcome().pools[0], pool=HOSTILE)
    bought = replace(PURCHASE, pool=HOSTILE)
    some = replace(outcome(refusals=[one]), pools=(pool,), policy=HOSTILE)
    workload = replace(ASKED.workload, notes=(HOSTILE,))
    asked = replace(ASKED, fleet=HOSTILE, files=(HOSTILE,), workload=workload)
    judged = {"lines": [HOSTILE]}
    text = page(document(asked, Answers((some, some), (bought,), judged)))
    found = read(text)
    assert [tag for tag, _ in found.tags].count("script") == 1
    assert [tag for tag, _ in found.tags].count("img") == 0
    assert found.rows["refused"][1][1] == HOSTILE
    assert HOSTILE in found.texts["judge"]
    assert text.count("<h1>") == 1


def test_where_all_fit_there_is_no_table_and_no_advice() -> None:
    found = read(page(document(ASKED, Answers((outcome(PLACEMENTS, ()),)))))
    assert "refused" not in found.rows
    assert "No pod was refused." in found.texts["reasons"]
    assert "What would help" not in found.texts["top"]
    assert {"purchase", "policies"}.isdisjoint(found.texts)


def test_a_fleet_without_cards_has_a_page_too() -> None:
    some = replace(outcome(), pools=outcome().pools[1:], cards=())
    found = read(page(document(ASKED, Answers((some,)))))
    assert "CPU, allocated" in found.texts["allocated"]
    assert "card memory, allocated" not in found.texts["allocated"]


def test_where_the_scheduler_sees_no_cards_there_is_no_map_of_them() -> None:
    told = read(page(document(ASKED, Answers((replace(outcome(), cards=()),)))))
    assert "heat" not in told.pictures
    assert "free memory fragmented" not in told.texts["top"]
    assert "card memory allocated" in told.texts["top"]


def test_the_map_says_how_many_cards_are_not_on_it() -> None:
    assert not any("Not shown" in text for text in PAGE.texts["heat"])
    cut = replace(outcome(), cards=(outcome().cards[0], outcome().cards[1]._replace(mig=7)))
    told = read(page(document(ASKED, Answers((cut,)))))
    assert any("Not shown: 1 card cut by MIG" in text for text in told.texts["heat"])


def test_the_chart_of_arrivals_ends_with_the_last() -> None:
    ended = (*moments(), moments()[-1]._replace(taken=Amounts(), asked=Amounts()))
    pages = [
        page(document(ASKED, Answers((replace(outcome(), timeline=each),))))
        for each in (moments(), ended)
    ]
    first, second = (each.partition('<section id="allocated"')[2] for each in pages)
    assert first.partition("</section>")[0] == second.partition("</section>")[0]


def test_a_workload_that_takes_time_is_shown_over_time() -> None:
    timeline = tuple(each._replace(time=3600.0 * each.arrived) for each in outcome().timeline)
    found = read(page(document(ASKED, Answers((replace(outcome(), timeline=timeline),)))))
    assert "hours since the first pod" in found.texts["stranded"]
    assert "pods arrived" in PAGE.texts["stranded"]


def test_of_pods_that_end_the_page_says_when_it_was_so() -> None:
    ended = replace(
        outcome([PLACEMENTS[0]._replace(ended=60.0), *PLACEMENTS[1:]]),
        fullest=Fullest(30.0, 7, 4),
        timeline=tuple(each._replace(time=each.arrived * 600.0) for each in moments()),
    )
    shown = page(document(ASKED, Answers((ended,))))
    when = " when the fleet is fullest (after 30s, 4 pods running)"
    assert f"How much of each pool is allocated{when}; hatched" in shown
    assert f"how many free cores{when}." in shown
    # Both charts over time have the same axis.
    assert shown.count("minutes since the first pod") == 2
    assert "how many free cores at the end." in page(REPORT)
