"""What HAMi's scheduler is asked, and what its answers are held against, without the program."""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.objects import Change
from hami_mock.errors import UsageError
from hami_mock.whatif.cluster_model import cluster_of
from hami_mock.whatif.demand import PodKind, Workload
from hami_mock.whatif.hami_judge import Court, judge
from hami_mock.whatif.hami_program import NAME, device_config
from hami_mock.whatif.placer import in_order
from hami_mock.whatif.placing import Placing
from hami_mock.whatif.requests import as_webhook_leaves
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.verdict import Difference, Verdict
from tests.unit.builders import problems_of
from tests.unit.whatif.fleets import arrivals, card, fleet, node_share, pod
from tests.unit.whatif.outcomes import pools as some_pools

Object = dict[str, Any]
RULES = Rules("hami")
T4 = "name: a, nodes: 2, cpu: 4, nvidia: {cards: 1, model: T4}"  # 15360 MiB
HALF = pod(card(memory=7000, cores=10))


def placing_of(folder: Path, *kinds: PodKind, text: str = T4) -> Placing:
    return Placing(cluster_of(fleet(folder, text)), kinds, RULES)


class Played:
    """Stands in for the API server and HAMi: a function decides about each pod that is made."""

    def __init__(self, decide: Callable[[Object], Object]) -> None:
        self._decide = decide
        self._changes: deque[Change] = deque()
        self.made: list[Object] = []
        self.deleted: list[str] = []

    async def create(self, _: object, thing: Object) -> None:
        self.made.append(thing)
        before = {**thing, "status": {"conditions": [{"reason": "SchedulerError"}]}}
        self._changes += [Change([each]) for each in (before, self._decide(thing))]

    async def delete(self, _: object, name: str, namespace: str, *, grace: int) -> None:
        self.deleted.append(name)

    async def watch(self, _: object, *, namespace: str) -> AsyncGenerator[Change, None]:
        while True:
            yield self._changes.popleft()


def on(thing: Object, node: str, allocated: str = "") -> Object:
    """A pod as HAMi and the node have left it."""
    said = {"hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": allocated}
    metadata = {**thing["metadata"], "annotations": said}
    return {**thing, "metadata": metadata, "spec": {**thing["spec"], "nodeName": node}}


def refused(thing: Object) -> Object:
    return {**thing, "status": {"conditions": [{"reason": "Unschedulable"}]}}


def heard(placing: Placing, kinds: list[PodKind], played: Played) -> Verdict:
    court = Court(placing, in_order(arrivals(*kinds), placing))
    anyio.run(court.hear, cast("Kubernetes", played))
    return court.verdict()


def test_the_placer_follows_to_the_card(tmp_path: Path) -> None:
    """HAMi puts both on one node, where the placer's next choice would be, and fills it."""
    placing = placing_of(tmp_path, HALF)
    (cards,) = placing.cluster.cards.values()
    ids = [*placing.cluster.card_ids(cards)]
    nodes = iter(["a-1", "a-1", "a-0", "a-0"])

    def decide(thing: Object) -> Object:
        if not (node := next(nodes, "")):
            return refused(thing)
        return on(thing, node, f"{ids[int(node[-1])]},NVIDIA,7000,10:;")

    played = Played(decide)
    assert heard(placing, [HALF] * 5, played) == Verdict(5, 4, 0, ())
    assert cards.memory.tolist() == [1360, 1360]
    assert [each["spec"]["schedulerName"] for each in played.made] == [NAME] * 5
    # Whoever is refused is out of the way of those who come.
    assert played.deleted == ["p4"]


def test_who_finds_no_room_or_takes_some_that_is_not_there_differs(tmp_path: Path) -> None:
    placing = placing_of(tmp_path, HALF)
    nodes = iter(["", "a-0", "a-0", "a-0"])

    def decide(thing: Object) -> Object:
        return on(thing, node) if (node := next(nodes)) else refused(thing)

    assert heard(placing, [HALF] * 4, Played(decide)).unlike == (
        Difference("p0", "nowhere", "a-0", "the placer sees room"),
        Difference("p3", "a-0", "nowhere", "the placer sees no room on that node"),
    )


def test_pods_without_cards_are_kube_schedulers_and_none_ends(tmp_path: Path) -> None:
    lasting = pod(node_share(3000), annotations={"hami-mock.io/duration": "1s", "other": "x"})
    placing = placing_of(tmp_path, lasting)
    played = Played(lambda thing: {**thing, "spec": {**thing["spec"], "nodeName": "a-1"}})
    verdict = heard(placing, [lasting] * 2, played)
    assert [each.why for each in verdict.unlike] == ["the placer sees no room on that node"]
    assert "schedulerName" not in played.made[0]["spec"]
    assert played.made[0]["metadata"]["annotations"] == {"other": "x"}


def test_hami_gets_pods_as_its_webhook_leaves_them(tmp_path: Path) -> None:
    vendors = placing_of(tmp_path).cluster.vendors
    kinds = [card(memory=100), card(), card(percent=50), card(0, memory=100), node_share(1)]
    found = [dict(as_webhook_leaves(pod(each), vendors).containers[0].asks) for each in kinds]
    gpu, memory, cores = (f"nvidia.com/gpu{end}" for end in ("", "mem", "cores"))
    assert found == [
        {gpu: 1, memory: 100},
        {gpu: 1, cores: 100},
        {gpu: 1, "nvidia.com/gpumem-percentage": 50},
        {gpu: 1, memory: 100},
        {"cpu": 1, "memory": 0},
    ]


def test_hamis_configuration_has_the_names_of_the_fleet(tmp_path: Path) -> None:
    text = "name: a, nodes: 1, resource-name: example.com/gpu, nvidia: {cards: 1, model: T4}"
    assert device_config(placing_of(tmp_path, text=text).cluster.vendors) == {
        "nvidia": {
            "resourceCountName": "example.com/gpu",
            "resourceMemoryName": "nvidia.com/gpumem",
            "resourceCoreName": "nvidia.com/gpucores",
            "resourceMemoryPercentageName": "nvidia.com/gpumem-percentage",
            "memoryFactor": 1,
            "defaultGPUNum": 1,
        }
    }


def test_a_fleet_that_hami_cant_be_asked_about_is_a_mistake(tmp_path: Path) -> None:
    pools = fleet(tmp_path, "name: a, nodes: 1, ascend: {cards: 1}", vendors="ascend")
    (problem,) = problems_of(
        lambda: judge(pools, Workload(()), RULES, cast("Any", None), Path("/bin/true"))
    )
    assert problem.startswith(
        "--hami-scheduler: HAMi's scheduler can't be asked about cards of Asc"
    )
    with pytest.raises(UsageError, match="--judge: the fleet has no nodes"):
        judge(some_pools(a=0), Workload(()), RULES, cast("Any", None), Path("/bin/true"))
