"""python -m bench: measure, and show each figure beside its target."""

import argparse
import os
import sys

# grpcio looks at this when it is imported: the bench starts processes, but never forks itself.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from bench.cluster_figures import cluster_figures
from bench.dra_figures import dra_figures
from bench.driver_figures import driver_figures
from bench.list_figures import list_figures
from bench.load_model_figures import load_model_figures
from bench.page_figures import page_figures
from bench.process_figures import idle_figures, start_figures
from bench.progress import clear, say
from bench.report import Section, as_json, as_table
from bench.scrape_figures import scrape_figures
from bench.stall_figures import stall_figures
from bench.status_figures import status_figures
from bench.workspace import workspace


def main() -> int:
    """Run all parts. The exit code is 0 whatever the figures are: they are no tests."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, rougher figures")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    try:
        sections = _measure(is_quick=options.quick)
    except KeyboardInterrupt:
        clear()
        print("stopped", file=sys.stderr)
        return 130
    clear()
    print(as_json(sections) if options.output == "json" else as_table(sections))
    return 0


def _measure(*, is_quick: bool) -> list[Section]:
    with workspace() as work:
        sections = [
            start_figures(work, repeats=3 if is_quick else 20),
            list_figures(work, repeats=3 if is_quick else 11),
            stall_figures(work, repeats=3 if is_quick else 11),
            load_model_figures(repeats=3 if is_quick else 20),
            scrape_figures(repeats=5 if is_quick else 21),
            idle_figures(work, seconds=5 if is_quick else 30),
            cluster_figures(work, repeats=3 if is_quick else 15),
            status_figures(work, repeats=10 if is_quick else 200),
            page_figures(work, seconds=3 if is_quick else 15),
            driver_figures(work, repeats=5 if is_quick else 21),
            dra_figures(work, repeats=50 if is_quick else 500),
        ]
        say("done")
        return sections


if __name__ == "__main__":
    sys.exit(main())
