"""A report for terminals, of 80 columns: the answer, then why, where, and what would help. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hami_mock.kit import durations
from hami_mock.kit.terminal import WIDEST, Style, paint, shorten, table, width, wrap
from hami_mock.kit.text import cut

Data = Mapping[str, Any]

JUDGES = {
    "judge": "What the real kube-scheduler says",
    "judge_hami": "What HAMi's scheduler says",
}
_NARROW = 80
_MOST_POOLS = 40
_MOST_NOTES = 10
_LETTERS_OF_A_NAME = 60
_LEFT = (
    "POOL",
    "FREE",
    "FRAGMENTED",
    "USELESS",
    "NO CORES",
    "NO SLOTS",
    "NO CPU/RAM",
    "IDLE CARDS",
)
_SHARES = ("memory", "cores", "slots", "mig", "cpu", "ram")


def lines(report: Data) -> Iterator[str]:
    """Yield the report's lines; as wide as the terminal, and of 80 columns where there is none."""
    columns = min(width() or _NARROW, WIDEST)
    yield from _answer(report, columns)
    yield from _reasons(report["reasons"], columns)
    yield from _pools(report, columns)
    yield from _left(report, columns)
    yield from _policies(report["policies"], columns)
    yield from _purchases(report["purchases"], columns)
    for key, title in JUDGES.items():
        yield from _judged(report[key], title, columns)
    yield from _advice(report["advice"], columns)
    yield from _notes(report["workload"]["notes"], columns)


def headline(report: Data) -> str:
    """Return the answer in a sentence."""
    pods, fit, refused = (report["answer"][key] for key in ("pods", "fit", "refused"))
    if not pods:
        return "The workload has no pods."
    if not refused:
        return "The pod fits." if pods == 1 else f"All {pods:,} pods fit."
    if pods == 1:
        return f"The pod doesn't fit: it lacks {report['reasons'][0]['lacks']}."
    verb = "don't" if refused > 1 else "doesn't"
    why = ", ".join(f"{each['pods']:,} for {each['lacks']}" for each in report["reasons"])
    return f"{fit:,} of {pods:,} pods fit; {refused:,} {verb}: {why}."


def waits_line(report: Data) -> str:
    """Return how many of those that fit had to wait for others to end; nothing if none had."""
    answer = report["answer"]
    if not answer["waited"]:
        return ""
    longest = durations.show(round(answer["longest_wait"]))
    return f"{answer['waited']:,} of them waited for others to end, at most {longest}."


def when(report: Data) -> str:
    """Return when the fleet was as it is shown; nothing where that is the end."""
    moment = report["moment"]
    if not moment["is_fullest"]:
        return ""
    after = durations.show(round(moment["time"]))
    return f" when the fleet is fullest (after {after}, {moment['running']:,} pods running)"


def rules_line(report: Data) -> str:
    """Return on what, and by which rules."""
    fleet, rules = report["fleet"], report["rules"]
    of_cards = f" with {_count(fleet['cards'], 'card')}" if fleet["cards"] else ""
    added = ", ".join(f"{more:+} of {pool}" for pool, more in fleet["added"].items())
    who = {"hami": "HAMi's scheduler", "kube": "kube-scheduler alone"}[rules["scheduler"]]
    where = f"On {_count(fleet['nodes'], 'node')}{of_cards}{added and f' ({added})'}"
    return f"{where}, by {who}, policy {rules['policy']}."


def percent(share: float | None) -> str:
    """Return a share as people read it; nothing at all and everything are said only of these."""
    if share is None:
        return "-"
    rounded = round(100 * share)
    if (rounded == 0 and share) or (rounded == 100 and share < 1):
        return "<1 %" if rounded == 0 else ">99 %"
    return f"{rounded} %"


def gib(mebibytes: float) -> str:
    """Return an amount of card memory in the largest unit of which there is one."""
    amount, unit = float(mebibytes), "MiB"
    for larger in ("GiB", "TiB", "PiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}" if amount >= 100 else f"{amount:.3g} {unit}"


def _answer(report: Data, columns: int) -> Iterator[str]:
    style = Style.GREEN if not report["answer"]["refused"] else Style.YELLOW
    for line in wrap(headline(report), columns):
        yield paint(line, Style.BOLD, style)
    if said := waits_line(report):
        yield from wrap(said, columns)
    yield from wrap(rules_line(report), columns)


def _reasons(reasons: Sequence[Data], columns: int) -> Iterator[str]:
    if not reasons:
        return
    rows = [
        (
            each["lacks"],
            each["pods"],
            shorten(cut(each["example"]["pod"]), _LETTERS_OF_A_NAME),
            cut(each["example"]["asks"]),
        )
        for each in reasons
    ]
    yield from _titled("Why pods don't fit")
    yield from table(("THEY LACK", "PODS", "SUCH AS", "WHICH ASKS FOR"), rows, " r  ", columns)


def _pools(report: Data, columns: int) -> Iterator[str]:
    pools = report["pools"][:_MOST_POOLS]
    used = [key for key in _SHARES if any(pool[key]["there"] for pool in report["pools"])]
    rows = [_pool(pool, used) for pool in pools]
    if len(report["pools"]) > 1:
        rows.append(_pool({"pool": "all", **report["total"]}, used))
    yield from _titled(f"What is taken{when(report)}")
    header = ("POOL", "NODES", "CARDS", *(key.upper() for key in used))
    yield from table(header, rows, " " + "r" * (len(header) - 1), columns)
    yield from _more(report["pools"])


def _pool(pool: Data, used: Sequence[str]) -> list[str]:
    return [
        pool["pool"],
        f"{pool['nodes_touched']}/{pool['nodes']}",
        f"{pool['cards_touched']}/{pool['cards']}" if pool["cards"] else "-",
        *(percent(pool[key]["share"]) for key in used),
    ]


def _left(report: Data, columns: int) -> Iterator[str]:
    """Yield what is left of the cards: who has room left wants to know for whom."""
    pools = [pool for pool in report["pools"] if pool["memory"]["there"]][:_MOST_POOLS]
    if not pools:
        return
    if len(pools) > 1:
        pools.append({"pool": "all", **report["total"]})
    rows = [
        (
            pool["pool"],
            gib(pool["memory"]["there"] - pool["memory"]["taken"]),
            percent(pool["memory"]["fragmented"]),
            gib(pool["memory"]["useless"]),
            gib(pool["stranded"]["memory_without_cores"]),
            gib(pool["stranded"]["memory_without_slots"]),
            gib(pool["stranded"]["memory_without_node"]),
            pool["stranded"]["cards_without_node"],
        )
        for pool in pools
    ]
    then = " then" if report["moment"]["is_fullest"] else ""
    yield from _titled(f"What is left of the cards' memory{then}, and how useful it is")
    yield from table(_LEFT, rows, " rrrRRRR", columns)


def _policies(policies: Sequence[Data], columns: int) -> Iterator[str]:
    if len(policies) < 2:
        return
    rows = [
        (
            each["policy"],
            each["fit"],
            each["refused"],
            each["nodes_touched"],
            each["cards_touched"],
            percent(each["memory_share"]),
            percent(each["cores_share"]),
            percent(each["memory_fragmented"]),
        )
        for each in policies
    ]
    yield from _titled("Policies compared")
    header = ("POLICY", "FIT", "DON'T", "NODES", "CARDS", "MEMORY", "CORES", "FRAGMENTED")
    yield from table(header, rows, " rrrrrrr", columns)


def _purchases(purchases: Sequence[Data], columns: int) -> Iterator[str]:
    if not purchases:
        return
    rows = [
        (
            each["pool"],
            each["nodes"],
            each["fit"],
            each["gained"],
            "yes" if each["is_enough"] else "no",
        )
        for each in purchases
    ]
    yield from _titled(f"More nodes, so that {purchases[0]['wanted']:,} pods fit")
    yield from table(("POOL", "BUY", "PODS FIT", "GAINED", "ENOUGH"), rows, " rrr ", columns)


def _judged(judged: Data | None, title: str, columns: int) -> Iterator[str]:
    if judged is None:
        return
    yield from _titled(title)
    for text in judged["lines"]:
        yield from wrap(cut(text), columns)


def _advice(advice: Sequence[Data], columns: int) -> Iterator[str]:
    if not advice:
        return
    yield from _titled("What would help")
    for each in advice:
        first, *others = wrap(each["text"], columns - 2)
        yield from (f"- {first}", *(f"  {line}" for line in others))


def _notes(notes: Sequence[str], columns: int) -> Iterator[str]:
    for note in notes[:_MOST_NOTES]:
        yield from ("", *wrap(f"note: {cut(note)}", columns))
    if (more := len(notes) - _MOST_NOTES) > 0:
        yield from ("", f"… and {more} more notes, which -o json has")


def _titled(title: str) -> Iterator[str]:
    yield from ("", f"{title}:")


def _more(pools: Sequence[Data]) -> Iterator[str]:
    if len(pools) > _MOST_POOLS:
        yield f"… and {len(pools) - _MOST_POOLS} more pools, which -o json and the page have"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"
