"""The placer against HAMi's own scheduler, on random small fleets and workloads.

All fleets stand side by side on one control plane, and a label keeps them apart: HAMi's scheduler
looks at nodes only now and then. Pods come one after the other, each after the last was served. Of
equal nodes and cards HAMi takes any, so before each pod the placer has the others where HAMi put
them; without that both totals differ by some pods, and HAMi's own from run to run.
"""

import os
import random
from collections.abc import Iterator, Sequence

import pytest

from hami_mock.fleet.sandbox import Sandbox
from hami_mock.hami.assignment import Assignment
from hami_mock.settings.pools import Pool
from hami_mock.whatif.card_fit import Taken
from hami_mock.whatif.cluster_model import cluster_of, load_fleet
from hami_mock.whatif.demand import Arrival, Container, PodKind, Workload
from hami_mock.whatif.manifests import pod_manifest
from hami_mock.whatif.placing import Choice, Placing
from hami_mock.whatif.rules import Rules
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
) -> Iterator[str]:
    """HAMi's scheduler, which has seen the nodes: it has placed a pod."""
    with hami_or_skip(cluster, tmp_path_factory.mktemp("scheduler")) as name:
        asks = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 5}
        kind = PodKind((Container(asks),), selector={_CASE: _CANARY})
        api.post(PODS, pod_manifest(_CANARY, kind, "default", name))
        _wait(api, _CANARY, {"placed"}, 180)
        yield name


def _wait(api: Api, name: str, wanted: set[str], seconds: float = 60) -> str:
    def see(pod: Object) -> str:
        return _state(pod) if pod["metadata"]["name"] == name else ""

    seen = api.wait(name, PODS, see, lambda counts: bool(wanted & {*+counts}), seconds=seconds)
    return next(state for state in seen if state in wanted)


def _state(pod: Object) -> str:
    if pod["metadata"].get("annotations", {}).get("hami.io/bind-phase") == "success":
        return "placed"
    reasons = {each.get("reason") for each in pod.get("status", {}).get("conditions", ())}
    return "refused" if "Unschedulable" in reasons else ""


class _Follower:
    """The placer on one of the fleets, with the pods where HAMi has put them."""

    def __init__(self, pools: Sequence[Pool], workload: Workload) -> None:
        self._placing = Placing(cluster_of(pools), (each.kind for each in workload.arrivals), RULES)
        (self._cards,) = self._placing.cluster.cards.values()
        ids = self._placing.cluster.card_ids(self._cards)
        self._place = {uuid: place for place, uuid in enumerate(ids)}

    def has_room(self, kind: PodKind) -> bool:
        return self._placing.choose(kind) is not None

    def follow(self, kind: PodKind, pod: Object) -> None:
        node = self._placing.cluster.node_named(pod["spec"]["nodeName"])
        assert node is not None
        assert self._placing.fits(kind)[node], f"{pod['metadata']['name']}: no room on that node"
        (devices,) = filter(None, Assignment.parse(_assigned(pod)).containers)
        places = {self._place[each.id]: each for each in devices}
        assert {*self._cards.node[[*places]].tolist()} == {node}
        own = [
            Taken(place, int(self._cards.number[place]), each.memory, each.cores)
            for place, each in places.items()
        ]
        self._placing.put(kind, Choice(node, {self._cards.vendor.word: own}))


def _assigned(pod: Object) -> str:
    return str(pod["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"])


def test_totals_are_those_of_hamis_scheduler(api: Api, hami: str, pools: tuple[Pool, ...]) -> None:
    real = followed = arrived = 0
    for case in (f"c{number}" for number in range(CASES)):
        own = [pool for pool in pools if pool.labels[_CASE] == case]
        workload = _workload(case)
        follower = _Follower(own, workload)
        for arrival in workload.arrivals:
            followed += follower.has_room(arrival.kind)
            api.post(PODS, pod_manifest(arrival.name, arrival.kind, "default", hami))
            if _wait(api, arrival.name, {"placed", "refused"}) == "placed":
                real += 1
                follower.follow(arrival.kind, api.get(f"{PODS}/{arrival.name}"))
        arrived += len(workload.arrivals)
    assert 0 < real < arrived
    assert abs(followed - real) <= real / 100, (followed, real)
