"""`hami-mock whatif`: what fits on a fleet, what doesn't and why, and what would change that."""

import os
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hami_mock.cli.output import say, show
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.errors import UsageError
from hami_mock.kit.own_files import write_whole
from hami_mock.kit.values import SEED, Kind, or_text, whole
from hami_mock.settings.pools import MOST_NODES
from hami_mock.whatif.rules import POLICIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hami_mock.settings.pools import Pool
    from hami_mock.whatif.demand import Workload
    from hami_mock.whatif.report import Answers, Asked
    from hami_mock.whatif.study import Question
    from hami_mock.whatif.verdict import Verdict

FORMATS = ("text", "json", "html")
NOT_ENOUGH = 3
"""The exit code when fewer pods fit than should."""

_ADDED = re.compile(r"([^=]+)=\+?(-?[0-9]{1,9})")
_NOTES = (
    "The fleet is a configuration file with pools. The workload is Pods, Deployments, Jobs, "
    "StatefulSets or DaemonSets in YAML or JSON, or a trace in CSV with the columns of Alibaba's "
    "openb. Pods are placed one after the other on an empty fleet, by the rules of HAMi's "
    "scheduler; without --judge it starts nothing and needs no cluster.\n\n"
    "It tries other policies and purchases by itself where that is quick. On a large fleet, say "
    "what to try: --buy POOL, or several policies.\n\n"
    "Exit codes: 0 all pods fit (or as many as --fit says), 3 fewer do, 2 wrong input, 1 "
    "anything else."
)


def _added(value: object) -> tuple[str, int]:
    found = _ADDED.fullmatch(str(value))
    if not found or abs(int(found[2])) > MOST_NODES:
        raise ValueError("no pool and number")
    return found[1], int(found[2])


_ADD = Kind(_added, f"POOL=N, with at most {MOST_NODES} nodes", metavar="POOL=N")


def parser() -> Parser:
    parser = Parser(
        "whatif",
        notes=_NOTES,
        examples=(
            "whatif --fleet examples/whatif/fleet.yaml --workload examples/whatif/inference.yaml",
            "whatif --fleet nodes.csv --workload trace.csv --policy binpack --policy spread",
            "whatif --fleet fleet.yaml --workload jobs.yaml web.yaml --buy a100 --fit 95",
            "whatif --fleet fleet.yaml --workload jobs.yaml --add a100=4 --report report.html",
            "whatif --fleet fleet.yaml --workload jobs.yaml -o json | jq .answer",
        ),
    )
    text = "the configuration file whose pools are the fleet, or a list of nodes (.csv) with the "
    text += "columns cpu_milli, memory_mib, gpu and model"
    parser.add("--fleet", text, metavar="FILE", required=True)
    text = "a file with pods that arrive; several files arrive one after the other"
    how: dict[str, Any] = {"nargs": "+", "action": "extend", "metavar": "FILE", "required": True}
    parser.add("--workload", text, **how)
    text = "which nodes and cards come first: the fullest (binpack), the emptiest (spread), the "
    text += "fullest nodes and the best connected cards (topology), or what HAMi's chart "
    text += "sets (hami: full nodes, empty cards); given several times, they are compared [hami; "
    text += "with --scheduler kube: spread, as kube-scheduler does by default]"
    parser.add("--policy", text, action="append", choices=[*POLICIES], metavar="POLICY")
    text = "whose rules: HAMi's scheduler sees cards; kube-scheduler alone sees only what nodes "
    text += "have of each resource [hami]"
    parser.add("--scheduler", text, choices=("hami", "kube"), default="hami", metavar="hami|kube")
    text = "show how many more nodes of this pool it takes; may be repeated"
    parser.add("--buy", text, action="append", metavar="POOL")
    text = "how many of the pods should fit, for --buy and the exit code, in percent [100]"
    parser.add("--fit", text, default=100, **reads(or_text(whole(1, 100))))
    text = "add N nodes to a pool before placing pods, or remove some (POOL=-1); may be repeated"
    parser.add("--add", text, action="append", default=[], **reads(_ADD))
    text = "run the workload through a real kube-scheduler too, in a control plane of its own, "
    text += "where pods never end, and show where it differs; needs the programs of hami-mock "
    text += "fleet demo"
    parser.add("--judge", text, choices=("cluster",), metavar="cluster")
    text = "use this program, HAMi's scheduler (2.10), as a judge too, on a fleet of such nodes"
    parser.add("--hami-scheduler", text, metavar="PROGRAM")
    text = "let pods stay forever, even those that end in the trace"
    parser.add("--stay", text, action="store_true")
    text = "shuffle the order of pods that arrive at the same time, by this number"
    parser.add("--seed", text, **reads(SEED))
    text = f"output format: {', '.join(FORMATS)} [text]"
    parser.add("-o --output", text, choices=FORMATS, default="text", metavar="|".join(FORMATS))
    return parser.add("--report", "also write the HTML page to this file", metavar="FILE")


def run(parsed: Parsed) -> int:
    """Find out and print; return 3 if fewer pods fit than should."""
    _check_report(parsed.report)
    _check_judges(parsed)
    progress = _Progress()
    asked, answers = _find_out(parsed, progress)
    progress.end()
    from hami_mock.whatif import report, report_html, report_text

    document = report.document(asked, answers)
    if parsed.report:
        _write(parsed.report, report_html.page(document))
    if parsed.output == "html":
        say(report_html.page(document), end="")
    else:
        show(document, parsed.output, report_text.lines(document))
    done = document["answer"]
    return NOT_ENOUGH if 100 * done["fit"] < parsed.fit * done["pods"] else 0


def _find_out(parsed: Parsed, progress: "_Progress") -> "tuple[Asked, Answers]":
    progress.tell("reading")
    from hami_mock.whatif import study
    from hami_mock.whatif.cluster_model import cluster_of, load_fleet
    from hami_mock.whatif.fragmentation import wishes_of
    from hami_mock.whatif.judged import told
    from hami_mock.whatif.placer import place
    from hami_mock.whatif.purchase import enlarged
    from hami_mock.whatif.report import Asked
    from hami_mock.whatif.rules import Rules, Scheduler
    from hami_mock.whatif.workload import read_workload

    added: Counter[str] = Counter()
    for pool, more in parsed.add:
        added[pool] += more
    question = study.Question(
        tuple(dict.fromkeys(parsed.policy or ())),
        Scheduler(parsed.scheduler),
        added,
        parsed.buy,
        parsed.fit,
    )
    workload = study.shuffled(read_workload(parsed.workload), parsed.seed)
    fleet = cache(partial(load_fleet, parsed.fleet))
    by = partial(place, has_ends=not parsed.stay)
    answers = study.answer(
        question, fleet, lambda pools, rules: by(pools, workload, rules), progress.tell
    )
    pools = enlarged(fleet(Rules(question.policy, question.scheduler)), question.added)
    if parsed.judge:
        had_ends = not parsed.stay and any(each.lasts is not None for each in workload.arrivals)
        tell = partial(told, had_ends=had_ends)
        progress.tell("asking the real kube-scheduler")
        answers = replace(answers, judged=tell(_judged(pools, question, workload)))
        if parsed.hami_scheduler:
            progress.tell("asking HAMi's scheduler")
            verdict = _judged_by_hami(pools, question, workload, Path(parsed.hami_scheduler))
            answers = replace(answers, judged_by_hami=tell(verdict, scheduler=Scheduler.HAMI))
    wishes = wishes_of(workload, cluster_of(pools).vendors)
    asked = Asked(parsed.fleet, parsed.workload, workload, wishes, parsed.seed, question.added)
    return asked, answers


def _judged(pools: "Sequence[Pool]", question: "Question", workload: "Workload") -> "Verdict":
    from hami_mock.fleet.sandbox import find_programs
    from hami_mock.whatif.judge import judge
    from hami_mock.whatif.rules import Rules, Scheduler

    return judge(pools, workload, Rules(question.policy, Scheduler.KUBE), find_programs())


def _judged_by_hami(
    pools: "Sequence[Pool]", question: "Question", workload: "Workload", program: Path
) -> "Verdict":
    from hami_mock.fleet.sandbox import find_programs
    from hami_mock.whatif.hami_judge import judge
    from hami_mock.whatif.rules import Rules

    return judge(pools, workload, Rules(question.policy), find_programs(), program)


class _Progress:
    """A line on standard error that says what is done, where somebody looks at it."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def tell(self, text: str) -> None:
        if self._is_shown:
            print(f"\r\x1b[K{text} …", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _check_judges(parsed: Parsed) -> None:
    """Raise UsageError for a judge that can't be asked."""
    program = parsed.hami_scheduler
    if program and not parsed.judge:
        raise UsageError("--hami-scheduler: it needs --judge cluster")
    if program and parsed.scheduler == "kube":
        raise UsageError("--hami-scheduler: --scheduler kube leaves HAMi out: give one of them")
    if program and not (Path(program).is_file() and os.access(program, os.X_OK)):
        raise UsageError(f"--hami-scheduler: {program!r} isn't a program: name HAMi's scheduler")


def _check_report(path: str | None) -> None:
    """Raise UsageError now for what couldn't be written when all is done."""
    if path and not Path(path).absolute().parent.is_dir():
        raise UsageError(f"--report: {path!r}: there is no such folder: create it first")
    if path and Path(path).is_dir():
        raise UsageError(f"--report: {path!r} is a folder: give a name for the file in it")


def _write(path: str, text: str) -> None:
    try:
        write_whole(Path(path), text.encode())
    except OSError as error:
        raise UsageError(f"--report: can't write {path!r}: {error.strerror}") from error
