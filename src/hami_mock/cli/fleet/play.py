"""`hami-mock fleet play`: create the pods of a recorded trace, and delete them after."""

import io
from dataclasses import asdict

import anyio

from hami_mock.cli.output import say
from hami_mock.cli.parser import Parsed, Parser, reads
from hami_mock.cli.run import run_async
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.fleet.budget import DEFAULT_RATE, Budget
from hami_mock.fleet.trace import DEFAULT_NAMES, Names, TracePod, Wanted, last_end, pods, read
from hami_mock.fleet.trace_player import make_namespace, play, remove
from hami_mock.kit.files import read_text
from hami_mock.kit.values import or_text, pattern, whole

_NOTES = """\
TRACE is a CSV file with the columns of Alibaba's openb traces: name, cpu_milli, memory_mib, \
num_gpu, gpu_milli, optionally gpu_spec, and creation_time, scheduled_time and deletion_time \
in seconds. A pod comes at its creation_time, and runs for as long as it did: the annotation \
hami-mock.io/duration says how long, and the Stage that `fleet export-kwok` writes for KWOK ends \
it. A pod that asks for a part of cards gets that percentage of their memory and cores; gpu_milli \
0 or 1000 is all of each. HAMi's annotation asks for the models in gpu_spec. `hami-mock whatif` \
reads a trace in the same way.

The namespace must be a new one. It is deleted when the last pod should have ended (or at Ctrl-C), \
unless you say --keep."""
_MOST_BYTES = 2**28
"""As much as a million rows have."""
_NAME = pattern(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "a namespace's name", "NAME")
_RESOURCE = pattern(r"[A-Za-z0-9./-]{0,300}", "a resource's name", "RESOURCE")


def parser() -> Parser:
    parser = Parser(
        "fleet play",
        "create the pods of a recorded trace at the recorded times, and delete them afterwards",
        usage="TRACE [FLAGS]",
        notes=_NOTES,
        examples=(
            "fleet play openb_pod_list_default.csv --time-factor 600",
            "fleet play trace.csv --scheduler hami-scheduler --pods 500 --keep",
        ),
    )
    parser.add("trace", "the CSV file", metavar="TRACE")
    parser.add("--namespace", "namespace to create [trace]", default="trace", **reads(_NAME))
    text = "how many times faster than recorded [1]"
    parser.add("--time-factor", text, default=1, **reads(or_text(whole(1, 100_000))))
    parser.add(
        "--scheduler", "the pods' schedulerName [the default one]", metavar="NAME", default=""
    )
    for kind, default in asdict(DEFAULT_NAMES).items():
        text = f"resource for {kind}; empty for none [{default}]"
        parser.add(f"--{kind}-resource", text, default=default, **reads(_RESOURCE))
    parser.add("--pods", "create only so many [all]", **reads(or_text(whole(1, 1_000_000))))
    text = f"writes a second to the API server, at most; 0 for no limit [{DEFAULT_RATE:g}]"
    parser.add("--writes", text, default=int(DEFAULT_RATE), **reads(or_text(whole(0, 100_000))))
    return parser.add("--keep", "leave the namespace and its pods there", action="store_true")


def run(parsed: Parsed) -> None:
    run_async(played, parsed, loaded(parsed))


def loaded(parsed: Parsed) -> list[TracePod]:
    text = read_text("can't read the trace", parsed.trace, _MOST_BYTES)
    return read(io.StringIO(text, newline=""), parsed.trace)[: parsed.pods]


async def played(parsed: Parsed, trace: list[TracePod]) -> None:
    wanted = Wanted(
        parsed.namespace,
        parsed.scheduler,
        Names(parsed.count_resource, parsed.memory_resource, parsed.cores_resource),
        parsed.time_factor,
    )
    budget, begun = Budget(parsed.writes), anyio.current_time()

    def lasted() -> float:
        return anyio.current_time() - begun

    async with Kubernetes() as kubernetes:
        await make_namespace(kubernetes, budget, parsed.namespace)
        try:
            count = await play(kubernetes, budget, pods(trace, wanted))
            say(f"{count} pods created in namespace {parsed.namespace}")
            if not parsed.keep:
                await anyio.sleep(max(0.0, last_end(trace) / wanted.time_factor - lasted()))
        finally:
            if not parsed.keep:
                with anyio.CancelScope(shield=True):
                    await remove(kubernetes, budget, parsed.namespace)
