"""python -m bench.fleet: a fleet on a real control plane with KWOK, beside targets and peers."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.fleet_binding import binding_figures
from bench.fleet_kueue import kueue_figures
from bench.fleet_memory import RACK, memory_figures, pool_file
from bench.fleet_whatif import whatif_figures
from bench.progress import clear, say
from bench.report import Figure, Section, as_json, as_table, broken
from hami_mock.fleet.sandbox import Sandbox, find_programs, sandbox
from hami_mock.fleet.sandbox.child import Child
from tests.fleet.api import NODES, PODS, Api, Object, phase, readiness
from tests.fleet.pods import pod

_WAIT_S = 900.0
_IDLE_S = 30.0
_QUIET_S = 5.0
_WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 16000, "nvidia.com/gpucores": 20}


def main() -> int:
    """Run all parts; return 1 if a target is missed that no machine is too slow for, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the nodes and pods")
    parser.add_argument("--programs", default="", help="a folder with the programs [the cache]")
    parser.add_argument("--kubernetes", default="", metavar="1.X", help="which of the cache's")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    programs = find_programs(options.programs, options.kubernetes)
    nodes, pods = (500, 100) if options.quick else (5000, 1000)
    sections: list[Section] = []
    try:
        sections.append(memory_figures(1000 if options.quick else 10_000))
        sections.append(whatif_figures())
        sections.append(binding_figures(pods))
        with sandbox(programs, audit=True) as running:
            sections += _fleet_figures(running, nodes, pods)
        with sandbox(programs) as running:
            sections.append(kueue_figures(running))
    finally:
        # Also what was measured before something went wrong.
        clear()
        print(as_json(sections) if options.output == "json" else as_table(sections))
    for line in (missed := broken(sections)):
        print(f"missed: {line}", file=sys.stderr)
    return int(bool(missed))


def _fleet_figures(running: Sandbox, nodes: int, pods: int) -> Iterator[Section]:
    api = Api(running.kubeconfig)
    with up(running, nodes) as fleet:
        began = time.monotonic()
        made = api.wait("nodes", NODES, lambda _: "", lambda s: s[""] == nodes, seconds=_WAIT_S)
        created = time.monotonic() - began
        say(f"fleet: {made.total():,} nodes made; KWOK makes them ready")
        are = api.wait("ready", NODES, readiness, lambda s: +s == {"True": nodes}, seconds=_WAIT_S)
        ready = time.monotonic() - began
        say("fleet: the controller manager goes on with the new nodes")
        _wait_until_quiet(running)
        cpu, memory = fleet.usage()
        yield Section(
            f"{nodes:,} nodes on a real API server",
            [
                Figure("created", nodes / created, "nodes/s", at_least=200),
                Figure("Ready", are["True"], "nodes", at_least=nodes, is_firm=True),
                Figure("all Ready after", ready, "s", 60, peer="KWOK alone: 60 s"),
                Figure("our CPU a node, until nobody writes", 1000 * cpu / nodes, "ms"),
                Figure("our memory", memory / 2**20, "MB"),
                Figure("KWOK's memory", running.children["kwok"].usage()[1] / 2**20, "MB"),
            ],
            notes=["fake-gpu-operator's own test drives 500 nodes; KWOK's README claims 1,000."],
        )
        yield _pod_figures(api, fleet, pods)
        yield _idle_figures(running, fleet)
        yield _rack_figures(api, fleet, running)


def _pod_figures(api: Api, fleet: Child, pods: int) -> Section:
    say(f"fleet: {pods:,} pods")
    before, began = fleet.usage(), time.monotonic()
    for number in range(pods):
        api.post(PODS, pod(f"pod-{number}", _WANTS, duration="10s"))
    api.wait(
        "running",
        PODS,
        phase,
        lambda seen: seen["Running"] + seen["Succeeded"] == pods,
        seconds=_WAIT_S,
    )
    running = time.monotonic() - began
    api.wait("over", PODS, phase, lambda seen: +seen == {"Succeeded": pods}, seconds=_WAIT_S)
    api.delete(PODS)
    api.wait("gone", PODS, phase, lambda seen: not +seen, seconds=_WAIT_S)
    used = fleet.usage().cpu_seconds - before.cpu_seconds
    return Section(
        f"{pods:,} pods: placed by kube-scheduler, run, over, gone",
        [
            Figure("placed and running", pods / running, "pods/s", peer="KWOK's README: 20"),
            Figure("our CPU a pod, from start to end", 1000 * used / pods, "ms", 5),
        ],
    )


def _idle_figures(running: Sandbox, fleet: Child) -> Section:
    say(f"fleet: {_IDLE_S:.0f} s of nothing")
    writes, cpu = _writes(running), fleet.usage().cpu_seconds
    time.sleep(_IDLE_S)
    return Section(
        f"Nothing happens for {_IDLE_S:.0f} s",
        [
            Figure("our writes to NVIDIA pools", _writes(running) - writes, "", 0, is_firm=True),
            Figure("our CPU", 1000 * (fleet.usage().cpu_seconds - cpu), "ms"),
        ],
        notes=["By the API server's audit log."],
    )


def _rack_figures(api: Api, fleet: Child, running: Sandbox) -> Section:
    say("fleet: a rack fails")
    from hami_mock.cli.ctl.client import ask
    from hami_mock.control.protocol import Request

    figures = []
    socket, rack = str(_socket(running)), "hami-mock.io/rack=a100-r1"
    for verb, wanted in (("stop-node", "Unknown"), ("start-node", "True")):
        began, used = time.monotonic(), fleet.usage().cpu_seconds
        next(ask(socket, Request(verb, {"targets": ["rack=a100-r1"]})))
        api.wait(
            verb,
            NODES,
            readiness,
            lambda seen, wanted=wanted: +seen == {wanted: RACK},  # type: ignore[misc]
            selector=rack,
            seconds=_WAIT_S,
        )
        figures.append(Figure(f"{verb}: all say so after", time.monotonic() - began, "s"))
        cpu = 1000 * (fleet.usage().cpu_seconds - used) / RACK
        figures.append(Figure(f"{verb}: our CPU a node", cpu, "ms"))
    return Section(f"A rack of {RACK} nodes", figures)


@contextmanager
def up(running: Sandbox, nodes: int) -> Iterator[Child]:
    file = running.folder / "fleet.yaml"
    file.write_text(pool_file("a100", nodes))
    words = ["fleet", "up", str(file), "--name", "bench", "--writes", "0"]
    variables = {
        "KUBECONFIG": str(running.kubeconfig_of("fleet")),
        "HAMI_MOCK_FLEET_SOCKET": str(_socket(running)),
    }
    yield running.start("fleet", [sys.executable, "-m", "hami_mock", *words], variables)
    running.stop("fleet")


def _socket(running: Sandbox) -> Path:
    return running.folder / "fleet.sock"


def _wait_until_quiet(running: Sandbox) -> None:
    """Wait until nobody has written for a while: new nodes are labelled and annotated by others."""
    before = -1
    while before != (size := running.audit_log.stat().st_size):
        before = size
        time.sleep(_QUIET_S)


def _writes(running: Sandbox) -> int:
    def is_ours(entry: Object) -> bool:
        return bool(entry["user"]["username"] == "fleet")

    return sum(map(is_ours, map(json.loads, running.audit_log.read_text().splitlines())))


if __name__ == "__main__":
    sys.exit(main())
