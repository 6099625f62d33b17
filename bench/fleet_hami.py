"""What HAMi's scheduler makes of many nodes: python -m bench.fleet_hami [--nodes 20] [--kube-qps 5]

It starts a control plane, a fleet and HAMi's scheduler ($E2E_HAMI_SCHEDULER names the program), and
tells how long a first pod waits, which is HAMi's first look at all nodes, and what becomes of pods
that one node alone can take, which is kube-scheduler's sampling of nodes.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.fleet import up
from bench.progress import clear, say
from bench.report import Figure, Section, as_table
from hami_mock.fleet.sandbox import Sandbox, find_programs, sandbox
from tests.e2e.harness.errors import RequirementsMissing
from tests.fleet.api import NODES, PODS, Api, Object, phase, readiness
from tests.fleet.hami_scheduler import running_hami
from tests.fleet.played import cards
from tests.fleet.pods import pod

_WANTS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8000}
_WAIT_S = 900.0
_LONE = 10
_PATIENCE_S = 30.0


def main() -> int:
    """Print the figures; return 1 if HAMi's scheduler isn't here."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet_hami", description=__doc__)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--kube-qps", type=int, default=5, help="of HAMi's scheduler [5]")
    text = "percentageOfNodesToScore of kube-scheduler; 0 is its default [0]"
    parser.add_argument("--percentage", type=int, default=0, help=text)
    options = parser.parse_args()
    with TemporaryDirectory() as folder, sandbox(find_programs()) as running:
        asked = {"qps": options.kube_qps, "percentage": options.percentage}
        with up(running, options.nodes):
            api = Api(running.kubeconfig)
            wanted = {"True": options.nodes}
            api.wait("ready", NODES, readiness, lambda seen: +seen == wanted, seconds=_WAIT_S)
            try:
                section = _figures(running, api, Path(folder), options.nodes, asked)
            except RequirementsMissing as missing:
                print(missing, file=sys.stderr)
                return 1
            finally:
                api.close()
    clear()
    print(as_table([section]))
    return 0


def _figures(
    running: Sandbox, api: Api, folder: Path, nodes: int, asked: dict[str, Any]
) -> Section:
    began = time.monotonic()
    with running_hami(running, folder, **asked) as scheduler:
        say("hami: its first look at all nodes")
        api.post(PODS, pod("first-0", _WANTS, schedulerName=scheduler))
        _wait_until_run(api, "first", 1, _WAIT_S)
        first = time.monotonic() - began
        say(f"hami: {_LONE} pods that one node each can take")
        every = sorted(api.all(NODES), key=lambda node: str(node["metadata"]["name"]))
        for number, node in enumerate(every[:: max(1, nodes // _LONE)][:_LONE]):
            lone = pod(f"lone-{number}", _WANTS, schedulerName=scheduler)
            lone["metadata"]["annotations"]["nvidia.com/use-gpuuuid"] = cards(node)[0]
            api.post(PODS, lone)
        left = _still_pending(api)
    return Section(
        f"HAMi's scheduler and {nodes:,} nodes, with --kube-qps {asked['qps']} and "
        f"percentageOfNodesToScore {asked['percentage']}",
        [
            Figure("a first pod runs after", first, "s"),
            Figure(f"of {_LONE} pods for one node each, Pending", left, "pods"),
        ],
        notes=[f"Pending: {_PATIENCE_S:.0f} s after they came, though their nodes are empty."],
    )


def _wait_until_run(api: Api, app: str, count: int, seconds: float) -> None:
    def good(seen: Counter[str]) -> bool:
        return +seen == {"Running": count}

    api.wait(f"{app} run", PODS, phase, good, selector=f"app={app}", seconds=seconds)


def _still_pending(api: Api) -> int:
    try:
        _wait_until_run(api, "lone", _LONE, _PATIENCE_S)
    except AssertionError:
        lone: list[Object] = api.all(PODS, "app=lone")
        return sum(phase(each) == "Pending" for each in lone)
    return 0


if __name__ == "__main__":
    sys.exit(main())
