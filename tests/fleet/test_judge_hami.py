"""The placer against HAMi's own scheduler, on random small fleets and workloads.

All fleets stand side by side on one control plane, and a label keeps them apart: HAMi's scheduler
looks at nodes only now and then. Pods come one after the other, each after the last was served. Of
equal nodes and cards HAMi takes any, so before each pod the placer has the others where HAMi put
them; without that both totals differ by some pods, and HAMi's own from run to run.
"""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hami_mock.cli.main import main
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.fleet.sandbox import Sandbox
from hami_mock.settings.pools import Pool
from hami_mock.whatif.cluster_model import cluster_of, load_fleet
from hami_mock.whatif.demand import Arrival, Container, PodKind, Workload
from hami_mock.whatif.hami_judge import Court
from hami_mock.whatif.hami_program import NAME
from hami_mock.whatif.manifests import pod_manifest
from hami_mock.whatif.placer import in_order
from hami_mock.whatif.placing import Placing
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.verdict import Verdict
from tests.e2e.harness import RequirementsMissing, hami_scheduler
from tests.fleet.api import NODES, PODS, Api, Object, readiness
from tests.fleet.hami_scheduler import hami_or_skip
from tests.fleet.program import Fleet

CASES = int(os.environ.get("WHATIF_HAMI_CASES", "12"))
RULES = Rules.of("hami")
_CASE = "test/case"
_CANARY = "canary"
_MODELS = ("T4", "A100-SXM4-40GB")
_HEAD = """\
hami: true
nvidia: {cards: 0}
mlu: {cards: 0}
iluvatar: {cards: 0}
ascend: {cards: 0}
pools:
"""


def _lines(case: str) -> Iterator[str]:
    chance = random.Random(f"fleet {case}")
    for number in range(chance.randint(1, 3)):
        yield (
            f"- {{name: {case}-{number}, nodes: {chance.randint(1, 3)}, "
            f"cpu: {chance.choice((8, 32))}, memory: 64Gi, labels: {{{_CASE}: {case}}}, "
            f"nvidia: {{cards: {chance.randint(1, 3)}, model: {chance.choice(_MODELS)}}}}}\n"
        )


def _kind(chance: random.Random, case: str) -> PodKind:
    asks = {
        "cpu": chance.choice((250, 1000, 4000)),
        "nvidia.com/gpu": chance.choice((1, 1, 1, 2)),
        "nvidia.com/gpumem": chance.choice((1000, 4000, 9000, 15_000, 30_000)),
        "nvidia.com/gpucores": chance.choice((5, 20, 50, 100)),
    }
    return PodKind((Container(asks),), selector={_CASE: case})


def _workload(case: str) -> Workload:
    chance = random.Random(f"pods {case}")
    kinds = [_kind(chance, case) for _ in range(chance.randint(2, 5))]
    pods = range(chance.randint(15, 30))
    return Workload(tuple(Arrival(f"{case}-{n}", "random", chance.choice(kinds)) for n in pods))


@pytest.fixture(scope="module")
def pools(api: Api, fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pool, ...]:
    file = tmp_path_factory.mktemp("hami") / "fleet.yaml"
    cases = (_CANARY, *(f"c{number}" for number in range(CASES)))
    file.write_text(_HEAD + "".join(line for case in cases for line in _lines(case)))
    found = load_fleet(str(file), RULES)
    fleet.start(file, "--writes", "0")
    nodes = sum(pool.nodes for pool in found)
    api.wait("nodes", NODES, readiness, lambda seen: +seen == {"True": nodes}, seconds=120)
    return found


@pytest.fixture(scope="module")
def hami(
    cluster: Sandbox, api: Api, pools: tuple[Pool, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """HAMi's scheduler, which has seen the nodes: it has placed a pod."""
    with hami_or_skip(cluster, tmp_path_factory.mktemp("scheduler")) as name:
        assert name == NAME
        asks = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 5}
        kind = PodKind((Container(asks),), selector={_CASE: _CANARY})
        api.post(PODS, pod_manifest(_CANARY, kind, "default", name))
        api.wait(_CANARY, PODS, _bind_phase, lambda seen: bool(seen["success"]), seconds=180)
        yield


def _bind_phase(pod: Object) -> str:
    return str(pod["metadata"].get("annotations", {}).get("hami.io/bind-phase", ""))


@pytest.mark.usefixtures("hami")
def test_totals_are_those_of_hamis_scheduler(cluster: Sandbox, pools: tuple[Pool, ...]) -> None:
    async def hear(case: str) -> Verdict:
        workload = _workload(case)
        own = [pool for pool in pools if pool.labels[_CASE] == case]
        kinds = (each.kind for each in workload.arrivals)
        placing = Placing(cluster_of(own), kinds, RULES)
        court = Court(placing, in_order(workload, placing), f"{case}-")
        async with Kubernetes(cluster.kubeconfig) as kube:
            await court.hear(kube)
        return court.verdict()

    verdicts = [anyio.run(hear, f"c{number}") for number in range(CASES)]
    real, arrived = sum(each.placed for each in verdicts), sum(each.pods for each in verdicts)
    unlike = [each for verdict in verdicts for each in verdict.unlike]
    assert 0 < real < arrived
    assert len(unlike) <= real / 100, unlike


@pytest.mark.usefixtures("programs")
def test_the_command_asks_hamis_scheduler_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole cards, parts, pods that HAMi's webhook fills in, MIG instances, and pods without."""
    try:
        program = hami_scheduler()
    except RequirementsMissing as missing:
        pytest.skip(str(missing))
    monkeypatch.chdir(Path(__file__).parents[2])
    files = ("examples/whatif/inference.yaml", "examples/whatif/training.yaml")
    asked = ["--fleet", "examples/whatif/fleet.yaml", "--workload", *files, "--policy", "hami"]
    judges = ["--judge", "cluster", "--hami-scheduler", str(program)]
    assert main(["whatif", *asked, *judges, "--buy", "cpu", "-o", "json"]) == 3
    report = json.loads(capsys.readouterr().out)
    told = report["judge_hami"]
    assert told["differences"] == []
    assert (told["pods"], told["alone"]) == (161, report["answer"]["fit"])
    assert abs(told["placed"] - told["alone"]) <= told["alone"] / 100


@pytest.mark.usefixtures("programs")
def test_a_program_that_ends_is_told_of_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked = ["--fleet", "examples/whatif/fleet.yaml", "--workload", "examples/whatif/trace.csv"]
    judges = ["--judge", "cluster", "--hami-scheduler", "/bin/true"]
    assert main(["whatif", *asked, *judges]) == 1
    assert "hami-scheduler ended by itself with 0" in capsys.readouterr().err
