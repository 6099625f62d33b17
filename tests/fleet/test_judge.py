"""The placer against the real kube-scheduler, on random small fleets and workloads.

Each pod must be on a node that the placer would choose from, or be refused by all nodes for the
same reasons: then all totals are equal.
"""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hami_mock.cli.main import main
from hami_mock.fleet.sandbox import Programs, Sandbox
from hami_mock.settings.pools import Pool
from hami_mock.whatif.cluster_model import cluster_of, load_fleet
from hami_mock.whatif.demand import (
    Arrival,
    Container,
    Match,
    PodKind,
    Spread,
    Toleration,
    Workload,
)
from hami_mock.whatif.judge import court, hear
from hami_mock.whatif.placing import Placing
from hami_mock.whatif.rules import Rules

CASES = int(os.environ.get("WHATIF_CASES", "200"))
POLICIES = ("binpack", "spread")
_MODELS = ("T4", "A100-SXM4-40GB")
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_OF_WEB = (Match("app", "In", ("web",)),)


@pytest.fixture(scope="module", params=POLICIES)
def rules(request: pytest.FixtureRequest) -> Rules:
    return Rules.of(request.param, "kube")


@pytest.fixture(scope="module")
def cluster(
    programs: Programs, rules: Rules, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sandbox]:
    pools = _fleet(random.Random(0), tmp_path_factory.mktemp("fleet"), cards=1)
    with court(programs, rules, Placing(cluster_of(pools), (), rules).scored) as running:
        yield running


def _fleet(chance: random.Random, folder: Path, cards: int | None = None) -> tuple[Pool, ...]:
    lines = []
    for number in range(chance.randint(1, 3)):
        own = chance.choice((0, 1, 2)) if cards is None else cards
        model = f", model: {chance.choice(_MODELS)}" if own else ""
        taints = chance.choice(("[]", "[]", '["gpu=yes:NoSchedule"]', '["old=:NoExecute"]'))
        lines.append(
            f"- {{name: n{number}, nodes: {chance.randint(1, 4)}, cpu: {chance.choice((2, 4, 8))}, "
            f"memory: {chance.choice((4, 8, 16))}Gi, max-pods: {chance.choice((3, 5, 110))}, "
            f"zone: [x, y], taints: {taints}, nvidia: {{cards: {own}{model}}}}}"
        )
    file = folder / "fleet.yaml"
    file.write_text("vendors: [nvidia]\npools:\n" + "\n".join(lines) + "\n")
    return load_fleet(str(file), Rules())


def _kind(chance: random.Random) -> PodKind:
    asks = {"cpu": chance.choice((0, 250, 1000)), "memory": chance.choice((0, 2**29, 2**31))}
    if chance.random() < 0.5:
        asks |= {"nvidia.com/gpu": chance.choice((1, 2, 8))}
        asks |= {"nvidia.com/gpumem": chance.choice((1000, 8000))}
    if chance.random() < 0.1:
        asks |= {"example.com/none": 1}
    first = [
        Container({"cpu": chance.choice((500, 3000))}, True, chance.random() < 0.4)
        for _ in range(chance.choice((0, 0, 1, 2)))
    ]
    bears = (Toleration("gpu", "yes"), Toleration("gpu"), Toleration(), Toleration("old", None))
    spreads = (Spread(_ZONE, 1, _OF_WEB), Spread(_HOST, chance.choice((1, 2)), _OF_WEB))
    terms = ((Match(_ZONE, "In", ("x",)),), (Match("hami-mock.io/pool", "NotIn", ("n0",)),))
    return PodKind(
        (*first, Container({name: amount for name, amount in asks.items() if amount})),
        tolerations=tuple(chance.sample(bears, chance.randint(0, 2))),
        terms=tuple(chance.sample(terms, chance.choice((0, 0, 1, 2)))),
        labels={"app": chance.choice(("web", "web", "db"))},
        spreads=tuple(chance.sample(spreads, chance.choice((0, 0, 0, 1, 2)))),
        selector={_ZONE: "y"} if chance.random() < 0.1 else {},
        priority=chance.choice((0, 0, 0, 7)),
    )


def _workload(chance: random.Random) -> Workload:
    kinds = [_kind(chance) for _ in range(chance.randint(1, 5))]
    pods = range(chance.randint(5, 25))
    return Workload(tuple(Arrival(f"p{n}", "random", chance.choice(kinds)) for n in pods))


@pytest.mark.usefixtures("programs")
def test_the_command_asks_a_judge_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    asked = ("--fleet", "examples/whatif/fleet.yaml", "--workload", "examples/whatif/trace.csv")
    assert main(["whatif", *asked, "--judge", "cluster", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["judge"]
    assert told["differences"] == []
    assert (told["pods"], told["had_ends"]) == (160, True)
    # They stay for ever there, so not all have room.
    assert 0 < told["placed"] < 160
    assert told["alone"] == told["placed"] or told["chance"]


@pytest.mark.parametrize("seed", range(CASES // len(POLICIES)))
def test_both_agree(cluster: Sandbox, rules: Rules, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{rules.policy} {seed}")
    pools, workload = _fleet(chance, tmp_path), _workload(chance)
    verdict = anyio.run(hear, cluster, pools, workload, rules)
    assert verdict.unlike == ()
    assert verdict.pods == len(workload.arrivals)
    # Who follows nobody has the same total, but for what chance decided among equal nodes.
    assert verdict.alone == verdict.placed or verdict.chance
