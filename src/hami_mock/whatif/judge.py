"""The real kube-scheduler as a judge: the same nodes and pods in a control plane of one's own.

No kubelet and no KWOK is needed, for a pod counts once it is bound. The scheduler scores as the
placer's policy says, and by nothing else: MostAllocated is binpack, LeastAllocated is spread.
"""

import json
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing, contextmanager

import anyio

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.objects import Change
from hami_mock.cluster.resources import NODES, PODS
from hami_mock.errors import NotThere, StartError, UsageError
from hami_mock.fleet.nodes import node_object, state_of
from hami_mock.fleet.sandbox import Programs, Sandbox, sandbox
from hami_mock.fleet.sandbox.flags import REQUESTS_PER_SECOND
from hami_mock.settings.pools import Pool
from hami_mock.whatif.cluster_model import FLEET, cluster_of
from hami_mock.whatif.demand import Container, PodKind, Toleration, Workload
from hami_mock.whatif.manifests import Object, pod_manifest
from hami_mock.whatif.placer import in_order, place
from hami_mock.whatif.placing import Placing
from hami_mock.whatif.rules import NodePolicy, Rules, Scheduler
from hami_mock.whatif.verdict import Decision, Verdict, compare, reasons_of
from hami_mock.whatif.waiting import Waiting

_NAMESPACE = "default"
_AT_ONCE = 16
"""Requests that are under way at a time."""
_PATIENCE_SECONDS = 300.0
"""How long the scheduler may decide about nothing."""
_CANARY = "canary"
_STRATEGIES = {NodePolicy.BINPACK: "MostAllocated", NodePolicy.SPREAD: "LeastAllocated"}


@contextmanager
def court(programs: Programs, rules: Rules, resources: Sequence[str]) -> Iterator[Sandbox]:
    """Run a control plane whose scheduler scores as the rules say, by some resources.

    Enter it in the main thread. Raises StartError.
    """
    with sandbox(programs) as running:
        # What they would do to nodes and pods is no decision of the scheduler's.
        for name in ("kube-scheduler", "kwok", "kube-controller-manager"):
            running.stop(name)
        config = running.folder / "judge.json"
        kubeconfig = str(running.kubeconfig_of("kube-scheduler"))
        config.write_text(json.dumps(scheduler_config(kubeconfig, rules, resources)))
        running.start(
            "kube-scheduler",
            [programs.kube_scheduler, f"--config={config}", "--secure-port=0"],
        )
        yield running


def scheduler_config(kubeconfig: str, rules: Rules, resources: Sequence[str]) -> Object:
    strategy = {
        "type": _STRATEGIES[rules.nodes],
        "resources": [{"name": name, "weight": 1} for name in resources],
    }
    arguments = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    plugins = {
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]},
        # Nobody gives way to the more important ones here.
        "postFilter": {"disabled": [{"name": "*"}]},
    }
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": plugins,
        "pluginConfig": [arguments],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": kubeconfig,
            "qps": REQUESTS_PER_SECOND,
            "burst": REQUESTS_PER_SECOND,
        },
        "percentageOfNodesToScore": 100,
        "profiles": [profile],
    }


def judge(pools: Sequence[Pool], workload: Workload, rules: Rules, programs: Programs) -> Verdict:
    """Run a workload through the real scheduler, and compare.

    Raises UsageError for a fleet without nodes, StartError and ClusterError.
    """
    if not any(pool.nodes for pool in pools):
        raise UsageError("--judge: the fleet has no nodes: give a pool some, or use --add")
    placing = _placing(pools, workload, rules)
    with court(programs, rules, placing.scored) as running:
        return anyio.run(hear, running, pools, workload, rules)


async def hear(
    running: Sandbox, pools: Sequence[Pool], workload: Workload, rules: Rules
) -> Verdict:
    """Do so in a court that is open, and leave it empty. Pods don't end there."""
    placing = _placing(pools, workload, rules)
    queue = in_order(workload, placing)
    async with Kubernetes(running.kubeconfig) as kube:
        try:
            await _see(kube, *await _make_nodes(kube, pools))
            decisions = await _decisions(kube, placing, queue)
        finally:
            await _clear(kube)
    own = place(pools, workload, placing.rules, has_ends=False)
    return compare(placing, queue, decisions)._replace(alone=len(own.placements))


def _placing(pools: Sequence[Pool], workload: Workload, rules: Rules) -> Placing:
    kinds = (arrival.kind for arrival in workload.arrivals)
    return Placing(cluster_of(pools), kinds, Rules(rules.policy, Scheduler.KUBE))


async def _make_nodes(kube: Kubernetes, pools: Sequence[Pool]) -> tuple[Pool, str]:
    """Make all nodes; return the last one that has changed."""
    limit = anyio.CapacityLimiter(_AT_ONCE)
    made: dict[int, tuple[Pool, str]] = {}

    async def make(pool: Pool, index: int) -> None:
        node = node_object(pool, state_of(pool, index), FLEET)
        async with limit:
            await kube.create(NODES, node)
            # The API server taints new nodes until somebody says that they are ready.
            name = node["metadata"]["name"]
            taints = {"spec": {"taints": node["spec"].get("taints", [])}}
            now = await kube.patch(NODES, name, taints)
        made[int(now["metadata"]["resourceVersion"])] = pool, name

    async with anyio.create_task_group() as tasks:
        for pool in pools:
            for index in range(pool.nodes):
                tasks.start_soon(make, pool, index)
    return made[max(made)]


async def _see(kube: Kubernetes, pool: Pool, name: str) -> None:
    """Wait until the scheduler knows a node, and so all that changed before it: it takes a pod."""
    bears = tuple(Toleration(each.key, each.value, each.effect) for each in pool.taints)
    kind = PodKind((Container({}),), tolerations=bears)
    await kube.create(PODS, pod_manifest(_CANARY, kind, _NAMESPACE, only=name))
    async with aclosing(kube.watch(PODS, namespace=_NAMESPACE)) as changes:
        await _decided(changes, {_CANARY}, bound=True)
    await kube.delete(PODS, _CANARY, _NAMESPACE, grace=0)


async def _decisions(
    kube: Kubernetes, placing: Placing, queue: Sequence[Waiting]
) -> list[Decision]:
    """Make the pods one after the other, and return what became of each."""
    names = [f"p{number}" for number in range(len(queue))]
    is_spread = any(pod.arrival.kind.spreads for pod in queue)
    found: dict[str, Decision] = {}
    async with aclosing(kube.watch(PODS, namespace=_NAMESPACE)) as changes:
        for name, pod in zip(names, queue, strict=True):
            only = "" if pod.only is None else placing.cluster.name(pod.only)
            await kube.create(PODS, pod_manifest(name, pod.arrival.kind, _NAMESPACE, only=only))
            if is_spread:
                # Who is refused would get room as soon as others come that it is spread with.
                found |= await _decided(changes, {name})
                if not found[name].node:
                    await kube.delete(PODS, name, _NAMESPACE, grace=0)
        found |= await _decided(changes, {*names} - found.keys())
    return [found[name] for name in names]


async def _decided(
    changes: AsyncGenerator[Change, None], names: Collection[str], *, bound: bool = False
) -> dict[str, Decision]:
    """Wait until the scheduler has decided about some pods, or with `bound` has placed them.

    Raises StartError if it doesn't.
    """
    found: dict[str, Decision] = {}
    try:
        while len(found) < len(names):
            with anyio.fail_after(_PATIENCE_SECONDS):
                change = await anext(changes)
            for pod in change.things:
                name, decision = pod["metadata"]["name"], _decision(pod)
                if name in names and decision and (decision.node or not bound):
                    found[name] = decision
    except TimeoutError as error:
        told = f"it decided about {len(found)} of {len(names)} pods in {_PATIENCE_SECONDS:.0f} s"
        raise StartError(f"the real kube-scheduler is stuck: {told}") from error
    return found


def _decision(pod: Object) -> Decision | None:
    if node := pod.get("spec", {}).get("nodeName"):
        return Decision(node, {})
    for condition in pod.get("status", {}).get("conditions", ()):
        if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
            return Decision("", reasons_of(condition.get("message", "")))
    return None


async def _clear(kube: Kubernetes) -> None:
    with anyio.CancelScope(shield=True):
        for resource, namespace in ((PODS, _NAMESPACE), (NODES, "")):
            for thing in await kube.list_all(resource, namespace=namespace):
                try:
                    await kube.delete(resource, thing["metadata"]["name"], namespace, grace=0)
                except NotThere:
                    continue  # it ended by itself
