"""How long the placer takes for a workload like Alibaba's openb: 10,865 pods, 1,213 nodes.

`python -m bench.whatif`. The trace is invented from a seed, with openb's proportions: kinds of
nodes, shares of cards, and whole ones. CPU seconds count, for they depend less on what else runs.
"""

import random
import resource
import tempfile
import time
from pathlib import Path

from hami_mock.settings.pools import Pool
from hami_mock.whatif.cluster_model import load_fleet
from hami_mock.whatif.demand import Workload
from hami_mock.whatif.placer import place
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.trace import read_trace

SEED = 20230
PODS = 10_865
TARGET_SECONDS = 3.0
# model, cards, thousandths of a CPU, MiB, nodes: 1,213 nodes with 6,212 cards.
NODES = (
    ("G2", 8, 96_000, 786_432, 450),
    ("G2", 4, 96_000, 393_216, 200),
    ("T4", 2, 96_000, 393_216, 352),
    ("T4", 4, 128_000, 524_288, 10),
    ("G3", 8, 128_000, 1_048_576, 39),
    ("P100", 2, 64_000, 262_144, 90),
    ("V100M32", 8, 96_000, 786_432, 23),
    ("V100M16", 8, 64_000, 524_288, 49),
)
# Of two hundred pods: how many cards, and thousandths of one.
SHARES = ((40, 0, 0), (96, 1, 0), (60, 1, 1000), (2, 2, 1000), (1, 4, 1000), (1, 8, 1000))
SIZES = ((2000, 8192), (4000, 15_258), (6000, 12_288), (8000, 30_517), (11_400, 49_152))


def nodes_text() -> str:
    rows = [row for row in NODES for _ in range(row[4])]
    lines = [
        f"n{n},{cpu},{ram},{cards},{model}" for n, (model, cards, cpu, ram, _) in enumerate(rows)
    ]
    return "\n".join(("sn,cpu_milli,memory_mib,gpu,model", *lines))


def trace_text(pods: int = PODS, seed: int = SEED) -> str:
    """Return a trace of so many pods."""
    chance = random.Random(seed)
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time"]
    for number in range(pods):
        _, cards, milli = chance.choices(SHARES, [share[0] for share in SHARES])[0]
        cpu, ram = chance.choice(SIZES)
        if cards == 1 and not milli:
            milli = 10 * chance.randint(5, 95)
        spec = chance.choice(("", "", "", "", "T4", "G2", "V100M16|V100M32")) if cards else ""
        many = max(1, cards)
        row = (f"p{number}", cpu * many, ram * many, cards, milli, spec, number, number + 90_000)
        lines.append(",".join(map(str, row)))
    return "\n".join(lines)


def fleet(policy: str) -> tuple[Pool, ...]:
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        Path(file.name).write_text(nodes_text())
        return load_fleet(file.name, Rules.of(policy))


def workload() -> Workload:
    return read_trace("trace.csv", trace_text())


def main() -> None:
    """Print a line for each policy, with pods that end and that stay, and how much memory it took.

    They end as in the trace by default; `--stay` lets them stay.
    """
    pods = workload()
    for policy in ("binpack", "spread", "topology", "hami"):
        for way, has_ends in (("end", True), ("stay", False)):
            pools = fleet(policy)
            before, begin = time.process_time(), time.perf_counter()
            outcome = place(pools, pods, Rules.of(policy), has_ends=has_ends)
            cpu, wall = time.process_time() - before, time.perf_counter() - begin
            share = outcome.taken.cores / outcome.there.cores
            print(
                f"{policy:9} pods {way:4} {cpu:5.2f} s CPU, {wall:5.2f} s; "
                f"{len(outcome.placements):,} of {outcome.arrived:,} pods, {share:.1%} of the "
                f"cores when fullest; target {TARGET_SECONDS:.0f} s"
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory    {peak:.0f} MiB at most")


if __name__ == "__main__":
    main()
