"""HAMi's own scheduler as a judge: the same pods through its whole protocol, on a fleet.

The nodes are those of `hami-mock fleet`, and KWOK runs them. Of equal nodes and cards HAMi takes
any, so the placer follows: before each pod it has the others where HAMi has put them. Then both
must have room for it, or neither.
"""

import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import anyio

from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.cluster.objects import Change
from hami_mock.cluster.resources import PODS
from hami_mock.errors import StartError, UsageError
from hami_mock.fleet.fleet import Fleet
from hami_mock.fleet.names import DURATION
from hami_mock.fleet.running import Options, Running
from hami_mock.fleet.sandbox import Programs, Sandbox, sandbox
from hami_mock.fleet.sandbox.child import Child
from hami_mock.hami.assignment import BIND_PHASE, Assignment, BindPhase
from hami_mock.kit.concurrency import innermost
from hami_mock.settings.pools import Pool
from hami_mock.whatif import hami_program
from hami_mock.whatif.card_fit import Taken
from hami_mock.whatif.cluster_model import FLEET, cluster_of
from hami_mock.whatif.demand import PodKind, Workload
from hami_mock.whatif.hami_fit import Shares
from hami_mock.whatif.manifests import Object, pod_manifest
from hami_mock.whatif.placer import in_order, place
from hami_mock.whatif.placing import Choice, Placing
from hami_mock.whatif.requests import as_webhook_leaves
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.verdict import Difference, Verdict
from hami_mock.whatif.waiting import Waiting

_NAMESPACE = "default"
_PATIENCE_SECONDS = 300.0
"""How long HAMi's scheduler may decide about nothing."""
_AS_MANY_AS_IT_BEARS = 0


def judge(
    pools: Sequence[Pool], workload: Workload, rules: Rules, programs: Programs, program: Path
) -> Verdict:
    """Run a workload through HAMi's scheduler, and compare. Pods don't end there.

    Raises UsageError for a fleet that it can't be asked about, StartError and ClusterError.
    """
    kinds = (arrival.kind for arrival in workload.arrivals)
    placing = Placing(cluster_of(pools), kinds, rules)
    hami_program.device_config(placing.cluster.vendors)
    if not placing.cluster.size:
        raise UsageError("--judge: the fleet has no nodes: give a pool some, or use --add")
    with sandbox(programs) as running:
        court = Court(placing, in_order(workload, placing))
        try:
            verdict = anyio.run(_hear, running, Fleet(FLEET, pools), court, program)
        except BaseExceptionGroup as group:
            raise innermost(group) from None
    own = place(pools, workload, rules, has_ends=False)
    return verdict._replace(alone=len(own.placements))


async def _hear(running: Sandbox, fleet: Fleet, court: "Court", program: Path) -> Verdict:
    async with Kubernetes(running.kubeconfig) as kube, anyio.create_task_group() as tasks:
        await tasks.start(Running(fleet, kube, Options(_AS_MANY_AS_IT_BEARS)).run)
        await fleet.changes.wait_until(lambda: all(m.is_ready for m in fleet.members.values()))
        for child in hami_program.start(running, program, court.rules, court.vendors):
            tasks.start_soon(_watch_over, child)
        await court.hear(kube)
        tasks.cancel_scope.cancel()
    return court.verdict()


async def _watch_over(child: Child) -> None:
    """Raise StartError when a program ends by itself."""
    end = os.pidfd_open(child.pid)
    try:
        await anyio.wait_readable(end)
    finally:
        os.close(end)
    child.check()


class Court:
    """The placer, which follows what HAMi decides about one pod after the other.

    `prefix` is what their names begin with, where others are there.
    """

    def __init__(self, placing: Placing, queue: Sequence[Waiting], prefix: str = "p") -> None:
        self._placing, self._queue, self._prefix = placing, queue, prefix
        self.rules, self.vendors = placing.rules, placing.cluster.vendors
        self._placed = 0
        self._unlike: list[Difference] = []
        cluster = placing.cluster
        self._places = {
            uuid: place
            for cards in cluster.cards.values()
            for place, uuid in enumerate(cluster.card_ids(cards))
        }

    def verdict(self) -> Verdict:
        return Verdict(len(self._queue), self._placed, 0, tuple(self._unlike))

    async def hear(self, kube: Kubernetes) -> None:
        """Make the pods one after the other, each after the last one was decided about."""
        async with aclosing(kube.watch(PODS, namespace=_NAMESPACE)) as changes:
            for number, pod in enumerate(self._queue):
                name = f"{self._prefix}{number}"
                await kube.create(PODS, self._manifest(name, pod))
                if (decided := await self._decided(changes, name, pod)) is None:
                    self._see_refused(pod)
                    await kube.delete(PODS, name, _NAMESPACE, grace=0)
                else:
                    self._placed += 1
                    self._see_placed(pod, decided)

    def _manifest(self, name: str, pod: Waiting) -> Object:
        kind = as_webhook_leaves(pod.arrival.kind, self.vendors)
        staying = {key: text for key, text in kind.annotations.items() if key != DURATION}
        only = "" if pod.only is None else self._placing.cluster.name(pod.only)
        scheduler = hami_program.NAME if self._asks_cards(pod) else ""
        return pod_manifest(name, replace(kind, annotations=staying), _NAMESPACE, scheduler, only)

    def _asks_cards(self, pod: Waiting) -> bool:
        return bool(self._placing.hami.asked(pod.arrival.kind))

    async def _decided(
        self, changes: AsyncGenerator[Change, None], name: str, pod: Waiting
    ) -> Object | None:
        """Wait for a pod that runs; None: it is refused. Raises StartError."""
        try:
            with anyio.fail_after(_PATIENCE_SECONDS):
                async for change in changes:
                    for each in change.things:
                        if each["metadata"]["name"] != name:
                            continue
                        if self._is_served(each, pod):
                            return each
                        if _is_refused(each):
                            return None
        except TimeoutError as error:
            told = f"it decided nothing about {pod.arrival.name!r} in {_PATIENCE_SECONDS:.0f} s"
            raise StartError(f"HAMi's scheduler is stuck: {told}") from error
        raise StartError("the API server no longer reports changes of pods")

    def _is_served(self, seen: Object, pod: Waiting) -> bool:
        if self._asks_cards(pod):
            return bool(_annotations(seen).get(BIND_PHASE) == BindPhase.SUCCESS)
        return bool(seen["spec"].get("nodeName"))

    def _see_refused(self, pod: Waiting) -> None:
        if choice := self._placing.choose(pod.arrival.kind, pod.only):
            node = self._placing.cluster.name(choice.node)
            self._differ(pod, "nowhere", node, "the placer sees room")

    def _see_placed(self, pod: Waiting, seen: Object) -> None:
        kind, name = pod.arrival.kind, seen["spec"]["nodeName"]
        node = self._placing.cluster.node_named(name)
        shares: Shares | None = None
        if node is not None and self._placing.fits(kind, pod.only)[node]:
            shares = {} if not self._asks_cards(pod) else self._placing.hami.try_on(kind, node)[0]
        if node is None or shares is None:
            self._differ(pod, name, "nowhere", "the placer sees no room on that node")
            return
        self._placing.put(kind, Choice(node, self._assigned(kind, seen) or shares))

    def _assigned(self, kind: PodKind, seen: Object) -> Shares:
        """Return the cards that HAMi assigned; none where it doesn't say which part of them.

        Of cards that are cut it doesn't say where an instance stands, and of init containers it
        counts the larger of both.
        """
        found: dict[str, Sequence[Taken]] = {}
        if any(each.is_init for each in kind.containers):
            return found
        for word, cards in self._placing.cluster.cards.items():
            text = _annotations(seen).get(cards.vendor.pods.allocated, "")
            parts = [part for each in Assignment.parse(text).containers for part in each]
            at = [self._places[part.id] for part in parts]
            if at and not cards.is_cut[at].any():
                found[word] = tuple(
                    Taken(place, int(cards.number[place]), part.memory, part.cores)
                    for place, part in zip(at, parts, strict=True)
                )
        return found

    def _differ(self, pod: Waiting, real: str, ours: str, why: str) -> None:
        self._unlike.append(Difference(pod.arrival.name, real, ours, why))


def _annotations(pod: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"].get("annotations", {})
    return found


def _is_refused(pod: Object) -> bool:
    return any(condition.get("reason") == "Unschedulable" for condition in _conditions(pod))


def _conditions(pod: Object) -> Iterator[Mapping[str, str]]:
    yield from pod.get("status", {}).get("conditions", ())
