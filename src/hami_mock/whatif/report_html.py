"""A report as one page that needs no network and no other files; JavaScript only searches. Pure.

Whatever is in a report may have been written by anybody: all of it is escaped, and the page allows
no script or style but its own, by their hashes.
"""

import html
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

from hami_mock import __version__
from hami_mock.kit.text import cut
from hami_mock.whatif import report_charts as charts
from hami_mock.whatif.fragmentation import PARTS
from hami_mock.whatif.report_text import (
    JUDGES,
    gib,
    headline,
    percent,
    rules_line,
    waits_line,
    when,
)

Data = Mapping[str, Any]

MOST_ROWS = 2000
"""How many kinds of refused pods the page lists: nobody reads more, and browsers get slow."""
MOST_NAMES = 1000
"""How many names of pods of a kind it has."""
_MOST_CHARTED_POOLS = 24
_LONGEST_CELL = 300
_HATCH = (
    '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" width="7" '
    'height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="hatch" d="M0 0v7"/></pattern></defs></svg>'
)
_WORDS = (
    (
        "Allocated",
        "what pods have been given. What refused pods asked for isn't included.",
    ),
    (
        "Fragmented",
        "the share of what is free on cards that pods of this workload can't use: of the pods "
        "that an empty card of the kind would take, those that this card no longer has room "
        "for. 0 % on empty cards, 100 % where no pod fits.",
    ),
    ("Useless", "what is free on cards that no pod of this workload fits on any more (hatched)."),
    (
        "Stranded",
        "what is free but useless because something else is used up: memory on cards without "
        "cores or slots, cores on cards without memory, cards and their memory on nodes without "
        "CPU, memory or room for pods.",
    ),
    (
        "They lack",
        "the reason that most nodes give, among those that would take the pod if they were empty; "
        "if none would, what most empty nodes lack.",
    ),
)
_AT_END = " at the end"
_NOT_MODELLED = "docs/whatif.md says what is modelled and what isn't."


def page(report: Data) -> str:
    """Return the page."""
    style, script = _part("report.css"), _part("report.js")
    return Template(_part("report.html")).substitute(
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        title=_text(f"What fits: {headline(report)[:100]}"),
        headline=_text(headline(report)),
        rules=_text(f"{waits_line(report)} {rules_line(report)}".strip()),
        figures="".join(_figures(report)),
        advice=_advice(report["advice"]),
        sections=_HATCH + "\n".join(_sections(report)),
        footer=_text(_footer(report)),
    )


def _figures(report: Data) -> Iterator[str]:
    total, answer = report["total"], report["answer"]
    shown = [("pods fit", f"{answer['fit']:,}"), ("don't fit", f"{answer['refused']:,}")]
    for key, name in (("memory", "card memory"), ("cores", "card cores"), ("mig", "MIG slices")):
        if total[key]["there"]:
            shown.append((f"{name} allocated", _share(report, key)))
    shown.append(("CPU allocated", _share(report, "cpu")))
    if (fragmented := total["memory"]["fragmented"]) is not None:
        shown.append(("free memory fragmented", percent(fragmented)))
    for name, value in shown:
        yield f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>"


def _share(report: Data, key: str) -> str:
    """Return how much is allocated as it is shown, and at most where that was more."""
    share, peak = report["total"][key]["share"], report["peak"][key]
    at_most = f" (peak {percent(peak)})" if peak and percent(peak) != percent(share) else ""
    return f"{percent(share)}{at_most}"


def _advice(advice: Sequence[Data]) -> str:
    if not advice:
        return ""
    items = "".join(f"<li>{_text(each['text'])}</li>" for each in advice)
    return f'<div class="advice"><h2>What would help</h2><ul>{items}</ul></div>'


def _sections(report: Data) -> Iterator[str]:
    yield f'<div class="charts">{"".join(_charts(report))}</div>'
    yield _pools(report)
    for key, title in JUDGES.items():
        if judged := report[key]:
            said = "".join(f"<p>{_text(line)}</p>" for line in judged["lines"])
            yield _section(key, title, said)
    if report["refused"]:
        yield _refused(report["refused"])
    words = "".join(f"<dt>{_text(word)}</dt><dd>{_text(text)}</dd>" for word, text in _WORDS)
    yield _section("words", "What the words mean", f'<dl class="words">{words}</dl>')


def _charts(report: Data) -> Iterator[str]:
    yield _figure(
        "allocated",
        "Allocated against arrived",
        "How full the fleet is after each pod. Where more is asked for than is allocated, "
        "pods are refused.",
        charts.allocated(report),
    )
    if report["fragmentation"]:
        about = "How much of the free card memory is of no use to the pods of this workload."
        drawn = charts.fragmented(report)
        yield _figure("fragmentation", "Fragmentation over time", about, drawn)
    yield _figure(
        "stranded",
        "Stranded capacity over time",
        "What is free but useless because something else is used up.",
        charts.stranded(report),
    )
    about = "Each refused pod counts once, by what the nodes that could take it lack."
    drawn = charts.reasons(report) if report["reasons"] else "<p>No pod was refused.</p>"
    yield _figure("reasons", "Why pods don't fit", about, drawn)
    if counted := sum(map(sum, report["heat"]["cards"])):
        drawn = charts.heat(report)
        yield _figure("heat", "What is left of each card", _about_heat(report, counted), drawn)
    if any(each["nodes"] for each in report["purchases"]):
        yield _purchases(report["purchases"], charts.purchases(report))
    if len(report["policies"]) > 1:
        yield _policies(report["policies"], charts.policies(report))


def _about_heat(report: Data, counted: int) -> str:
    about = "How many cards have how much free memory and how many free cores"
    about += f"{when(report) or _AT_END}. Inside the frame one of the two is used up, and what is "
    about += "left of the other is stranded."
    if others := report["fleet"]["cards"] - counted:
        cards = "1 card" if others == 1 else f"{others:,} cards"
        about += f" Not shown: {cards} cut by MIG, or whose memory or cores don't count."
    return about


def _purchases(purchases: Sequence[Data], drawn: str) -> str:
    rows = [
        [
            each["pool"],
            f"{each['nodes']:,}",
            f"{each['fit']:,}",
            f"{each['gained']:,}",
            "yes" if each["is_enough"] else "no",
        ]
        for each in purchases
    ]
    wanted = f"{purchases[0]['wanted']:,}"
    table = _table(("pool", "nodes to buy", "pods that fit", "gained", "enough"), rows, "w###w")
    about = f"How many pods fit with more nodes of a pool, up to the {wanted} that should."
    return _figure("purchase", "What a purchase would change", about, drawn + table)


def _policies(policies: Sequence[Data], drawn: str) -> str:
    rows = [
        [
            each["policy"],
            f"{each['fit']:,}",
            f"{each['nodes_touched']:,}",
            f"{each['cards_touched']:,}",
            percent(each["memory_share"]),
            percent(each["cores_share"]),
            percent(each["memory_fragmented"]),
        ]
        for each in policies
    ]
    header = ("policy", "fit", "nodes used", "cards used", "memory", "cores", "fragmented")
    about = "The same pods in the same order, placed by each policy."
    table = _table(header, rows, "w######")
    return _figure("policies", "What a policy would change", about, drawn + table)


def _pools(report: Data) -> str:
    pools = report["pools"]
    shown = charts.shown_pools(pools, _MOST_CHARTED_POOLS)
    drawn = "".join(
        f"<figure><h3>{_text(pool['pool'])}</h3>"
        f'<p class="about">{pool["nodes_touched"]:,} of {pool["nodes"]:,} nodes and '
        f"{pool['cards_touched']:,} of {pool['cards']:,} cards in use</p>"
        f"{charts.pool(pool)}</figure>"
        for pool in shown
    )
    more = len(pools) - len(shown)
    note = f'<p class="about">The table has {more} more pools.</p>' if more else ""
    said = f"How much of each pool is allocated{when(report)}; hatched: free and useless."
    about = f'<p class="about">{_text(said)}</p>'
    fragmented = (f"{charts.BARS[key]} fragmented" for key in PARTS)
    header = ("pool", *charts.BARS.values(), *fragmented, "useless memory")
    rows = [
        [
            pool["pool"],
            *(_of_all(pool, key) for key in charts.BARS),
            *(percent(pool[key]["fragmented"]) for key in PARTS),
            gib(pool["memory"]["useless"]) if pool["memory"]["there"] else "-",
        ]
        for pool in (*pools, {"pool": "all", **report["total"]})
    ]
    table = _table(header, rows, "w" + "#" * (len(header) - 1))
    details = f"<details><summary>All numbers</summary>{table}</details>"
    return _section("pools", "Pools", f'{about}<div class="pools">{drawn}</div>{note}{details}')


def _of_all(pool: Data, key: str) -> str:
    part = pool[key]
    if not part["there"]:
        return "-"
    return f"{charts.amount(key, part['taken'])} of {charts.amount(key, part['there'])}"


def _refused(refused: Sequence[Data]) -> str:
    """Return the table of refused pods; those that are alike share a row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for each in refused:
        nodes = ", ".join(f"{count:,} {reason}" for reason, count in each["nodes"].items())
        alike.setdefault((each["owner"], each["asks"], each["lacks"], nodes), []).append(
            each["pod"]
        )
    rows = [(f"{len(names):,}", names, *row) for row, names in alike.items()][:MOST_ROWS]
    search = (
        '<p class="search" hidden><label>Search <input type="search" spellcheck="false"></label> '
        '<span id="found" class="quiet" role="status"></span></p>'
    )
    header = ("pods", "names", "of", "asks for", "lack", "nodes, by their reasons")
    table = _table(header, rows, "#_____")
    more = len(alike) - len(rows)
    note = f'<p class="about">{more:,} more kinds are in the JSON (-o json).</p>' if more else ""
    return _section("refused", f"{len(refused):,} refused pods", search + table + note)


def _names(names: Sequence[str]) -> str:
    """Return the first name, and the others where somebody asks for them, or searches."""
    first, *others = names
    if not others:
        return _text(first)
    listed = ", ".join(map(_text, others[:MOST_NAMES]))
    more = f" and {len(others) - MOST_NAMES:,} more" if len(others) > MOST_NAMES else ""
    summary = f"<summary>{_text(first)} …</summary>"
    return f"<details>{summary}<span>{listed}{more}</span></details>"


def _table(
    header: Sequence[str], rows: Sequence[Sequence[str | Sequence[str]]], columns: str
) -> str:
    """Return a table; `columns` has # for numbers, w for a word, _ for what may be long."""
    names = [{"#": ' class="number"', "w": ' class="word"'}.get(each, "") for each in columns]

    def row(cells: Sequence[str | Sequence[str]], tag: str) -> str:
        shown = (_text(cell) if isinstance(cell, str) else _names(cell) for cell in cells)
        pairs = zip(names, shown, strict=True)
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in pairs)

    body = "\n".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{row(header, "th")}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _figure(name: str, title: str, about: str, drawn: str) -> str:
    caption = f'<figcaption><h2 id="{name}-title">{_text(title)}</h2><p>{_text(about)}</p>'
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><figure>{caption}</figcaption>'
        f"{drawn}</figure></section>"
    )


def _section(name: str, title: str, content: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{_text(title)}</h2>{content}</section>'
    )


def _footer(report: Data) -> str:
    files = ", ".join(report["workload"]["files"])
    notes = " ".join(report["workload"]["notes"])
    made = f"hami-mock {__version__}: the fleet of {report['fleet']['file']}, the pods of {files}."
    return " ".join(filter(None, (made, notes, _NOT_MODELLED)))


@cache
def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _text(text: str) -> str:
    return html.escape(cut(text, _LONGEST_CELL))
