"""python -m bench.soak: let an agent live through much, and see that nothing of it grows."""

import argparse
import os
import sys
import time
from dataclasses import astuple, dataclass, fields

# grpcio looks at this when it is imported: the soak starts processes, but never forks itself.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from bench.progress import clear, say
from bench.soak_rig import Footprint, rig
from bench.trouble import BASE, Trouble
from bench.workspace import workspace
from hami_mock.kit.terminal import Style, paint, table

# By how much each may be above what it was after the warm-up. Python gives freed memory back to
# the system when it can; an idle connection to the API server comes and goes.
TOLERANCES = {
    "resident": 12.0,
    "proportional": 12.0,
    "files": 4,
    "sockets": 4,
    "threads": 1,
    "tasks": 4,
    "objects": 5_000,
}
_HEADER = ("", "DONE", "RSS MiB", "PSS MiB", "FILES", "SOCKETS", "THREADS", "TASKS", "OBJECTS")
_PAUSE = 0.02


@dataclass(frozen=True)
class Row:
    when: str
    done: int
    seen: Footprint

    @property
    def cells(self) -> tuple[str, ...]:
        values = (f"{v:.1f}" if isinstance(v, float) else f"{v:,}" for v in astuple(self.seen))
        return self.when, f"{self.done:,}", *values


def main() -> int:
    """Soak, print the table, and return 1 if something has grown."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1, help="another one makes other trouble")
    options = parser.parse_args()
    rows: list[Row] = []
    with workspace() as work, rig(work, BASE) as running:
        trouble = Trouble(running, options.seed)
        began = time.monotonic()

        def note(when: str) -> None:
            rows.append(Row(when, trouble.done.total(), running.agent.footprint()))
            say("  ".join(rows[-1].cells))

        def live(until: float) -> None:
            shown = time.monotonic()
            while time.monotonic() < until:
                running.agent.check()
                trouble.next()
                time.sleep(_PAUSE)
                if time.monotonic() > shown + 60:
                    shown = time.monotonic()
                    note(f"minute {(shown - began) / 60:.0f}")

        say("warming up")
        trouble.one_of_each()
        live(began + min(60.0, options.minutes * 60 / 4))
        trouble.end()
        note("after the warm-up")
        live(began + options.minutes * 60)
        trouble.end()
        running.agent.check()
        note("at the end")
    clear()
    return _report(rows, trouble, options.seed)


def _report(rows: list[Row], trouble: Trouble, seed: int) -> int:
    print("\n".join(table(_HEADER, [row.cells for row in rows], " rrrrrrrr")))
    first = next(row.seen for row in rows if row.when == "after the warm-up")
    last = rows[-1].seen
    print()
    grown = []
    for each in fields(Footprint):
        now, then = getattr(last, each.name), getattr(first, each.name)
        most = then + TOLERANCES[each.name]
        is_fine = now <= most
        grown += [] if is_fine else [each.name]
        verdict = paint("ok", Style.GREEN) if is_fine else paint("GROWN", Style.RED)
        print(f"  {each.name}: {now:,.6g}, was {then:,.6g}, may be {most:,.6g}: {verdict}")
    print(f"\nseed {seed}; done:")
    for name, count in trouble.done.items():
        print(f"  {count:7,}  {name}")
    print("refused, as can be:")
    for name, count in sorted(trouble.refused.items()):
        print(f"  {count:7,}  {name}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
