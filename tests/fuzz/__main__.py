"""python -m tests.fuzz: give every parser and every socket inputs that it wasn't made for."""

import argparse
import os
import signal
import sys

from bench.progress import clear, say
from hami_mock.kit.terminal import Style, paint, table
from tests.fuzz.supervisor import Goal, Score, Supervisor
from tests.fuzz.table import BY_NAME, TARGETS
from tests.fuzz.target import CASES


def main() -> int:
    """Fuzz, and return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="so many in all")
    parser.add_argument("--least", type=int, default=1_000, help="and so many for each target")
    parser.add_argument("--seconds", type=float, help="so long, however many inputs that are")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other inputs")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("target", nargs="*", choices=[*BY_NAME, []], help="default: all of them")
    options = parser.parse_args()
    chosen = tuple(BY_NAME[name] for name in options.target) or TARGETS
    goal = Goal(options.inputs, options.least, options.seconds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    supervisor = Supervisor(chosen, goal, seed=options.seed, workers=options.workers)
    try:
        for score in supervisor.run():
            rate = score.inputs / score.seconds if score.seconds else 0
            say(
                f"{supervisor.seconds:5.0f} s  {supervisor.inputs:9,} inputs  "
                f"{score.target.name}: {rate:,.0f} inputs/s"
            )
    except KeyboardInterrupt:
        pass  # what was found until now is worth knowing
    clear()
    return _report(supervisor, options.seed)


def _report(supervisor: Supervisor, seed: int) -> int:
    rows = [_row(score) for score in supervisor.scores]
    header = ("TARGET", "INPUTS", "INPUTS/s", "WAYS", "KEPT", "FINDINGS")
    print("\n".join(table(header, rows, " rrrr ")))
    found = [(score, each) for score in supervisor.scores for each in score.findings.values()]
    print(
        f"\n{supervisor.inputs:,} inputs in {supervisor.seconds:.0f} s, seed {seed}: "
        f"{len(found)} findings"
    )
    for score, each in found:
        print(f"\n{paint(f'{score.target.name}: {each.name}', Style.BOLD, Style.RED)}")
        print(f"{each.text}\n  input: {CASES / score.target.name / each.name}")
    return 1 if found else 0


def _row(score: Score) -> tuple[str, ...]:
    rate = score.inputs / score.seconds if score.seconds else 0
    ways, kept = (f"{sum(each.values()):,}" for each in (score.ways, score.kept))
    guided = (ways, kept) if score.target.is_guided else ("", "")
    names = ", ".join(score.findings)
    return score.target.name, f"{score.inputs:,}", f"{rate:,.0f}", *guided, names


if __name__ == "__main__":
    sys.exit(main())
