"""Two who place pods on a node of HAMi's: HAMi's own scheduler, and one that plays it.

The first is the real thing, and needs its program. The second does by hand what the first writes
down: it assigns cards, locks the node and binds the pod, so the node side is proven anywhere.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hami_mock.hami import register
from hami_mock.hami.assignment import (
    ASSIGNED_NODE,
    ASSIGNED_TIME,
    BIND_PHASE,
    BIND_TIME,
    AssignedDevice,
    Assignment,
    BindPhase,
)
from hami_mock.hami.kinds import HAMI_LOCK
from hami_mock.hami.lock import NodeLock
from hami_mock.vendors.hami_vendor import HamiVendor

from .harness import Hami, RequirementsMissing, hami_scheduler, running_hami
from .mock import TIMEOUT_S, Mock

Manifest = dict[str, Any]


def annotations_of(thing: Mapping[str, Any]) -> dict[str, str]:
    return dict(thing["metadata"].get("annotations", {}))


def cards_for(mock: Mock, vendor: HamiVendor) -> list[str]:
    """What HAMi calls the cards that the node has for it."""
    cluster = mock.cluster
    if vendor.node.encoding is None:
        # The scheduler reckons these from what the node can give.
        whole = cluster.allocatable().get(vendor.resources.cores, 0)
        count = whole // vendor.resources.cores_per_card
        return [f"{cluster.node_name}-cambricon-mlu-{i}" for i in range(count)]
    text = annotations_of(cluster.get("node", cluster.node_name)).get(vendor.node.register)
    if not text:
        return []
    cards = register.decode(text, vendor.node.encoding, cluster.node_name)
    return [card.id for card in cards]


class Placer:
    """Somebody who places pods on the node."""

    def __init__(self, mock: Mock) -> None:
        self.mock = mock

    def wait_for(self, vendor: HamiVendor, cards: int) -> None:
        """Wait until the node has that many cards for it."""
        raise NotImplementedError

    def place(self, pod: Manifest, vendor: HamiVendor) -> None:
        """Create a pod and see that it is placed, sooner or later."""
        raise NotImplementedError


class ByScheduler(Placer):
    """HAMi's own scheduler."""

    def __init__(self, mock: Mock, hami: Hami) -> None:
        super().__init__(mock)
        self.hami = hami

    def wait_for(self, vendor: HamiVendor, cards: int) -> None:
        ByHand(self.mock).wait_for(vendor, cards)
        wanted = set(cards_for(self.mock, vendor))
        self.mock.cluster.wait(
            "the cards in HAMi's scheduler",
            lambda: self.hami.cards().get(self.mock.cluster.node_name, set()),
            # It keeps others for a while, whose capacity the kubelet still shows.
            lambda found: wanted <= found,
            timeout=TIMEOUT_S,
        )

    def place(self, pod: Manifest, vendor: HamiVendor) -> None:
        pod["spec"]["schedulerName"] = self.hami.scheduler_name
        self.mock.cluster.apply(pod)


class ByHand(Placer):
    """Gives each container the node's first cards."""

    def wait_for(self, vendor: HamiVendor, cards: int) -> None:
        self.mock.cluster.wait(
            "the cards in the node's annotation",
            lambda: len(cards_for(self.mock, vendor)),
            lambda found: found == cards,
            timeout=TIMEOUT_S,
        )

    def place(self, pod: Manifest, vendor: HamiVendor) -> None:
        spec = pod["spec"]
        wanting = [
            container["resources"]["limits"]
            for container in (*spec.get("initContainers", ()), *spec["containers"])
            if vendor.resources.count in container["resources"]["limits"]
        ]
        self.assign(pod, vendor, [self._devices(limits, vendor) for limits in wanting])

    def assign(
        self,
        pod: Manifest,
        vendor: HamiVendor,
        containers: Sequence[tuple[AssignedDevice, ...]],
    ) -> None:
        """Create a pod that has these devices assigned, and bind it."""
        cluster, node = self.mock.cluster, self.mock.cluster.node_name
        assert vendor.lock is not None
        lock = vendor.lock.annotation
        cluster.wait(
            "the node unlocked",
            lambda: annotations_of(cluster.get("node", node)),
            lambda found: lock not in found,
            timeout=TIMEOUT_S,
        )
        name, text = pod["metadata"]["name"], Assignment(tuple(containers)).encode()
        pod["metadata"].setdefault("annotations", {}).update(
            {
                ASSIGNED_NODE: node,
                ASSIGNED_TIME: str(int(time.time())),
                BIND_TIME: str(int(time.time())),
                BIND_PHASE: BindPhase.ALLOCATING,
                vendor.pods.to_allocate: text,
                vendor.pods.allocated: text,
                **_told_of_templates(vendor, containers),
            }
        )
        pod["spec"]["schedulerName"] = "by-hand"
        cluster.apply(pod)
        owner = NodeLock(datetime.now(UTC), "default", name)
        if vendor.lock != HAMI_LOCK:
            owner = NodeLock(owner.time)
        cluster.kubectl("annotate", "node", node, f"{lock}={owner.encode()}")
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        metadata = {"name": name, "namespace": "default"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        cluster.kubectl(
            "create", f"--raw=/api/v1/namespaces/default/pods/{name}/binding", "-f", "-",
            stdin=json.dumps(binding),
        )  # fmt: skip

    def _devices(self, limits: Mapping[str, str], vendor: HamiVendor) -> tuple[AssignedDevice, ...]:
        names = vendor.resources
        memory = int(limits.get(names.memory, "0")) * names.memory_unit
        cores = int(limits.get(names.cores, "0"))
        cards = self.choose(vendor)
        return tuple(
            AssignedDevice(cards[i], vendor.word, memory, cores)
            for i in range(int(limits[names.count]))
        )

    def choose(self, vendor: HamiVendor) -> list[str]:
        """The cards that a container may have, the best first."""
        return cards_for(self.mock, vendor)


class FillingByHand(ByHand):
    """Fills a healthy card before it goes on to the next, as HAMi's scheduler does with binpack."""

    def choose(self, vendor: HamiVendor) -> list[str]:
        cluster = self.mock.cluster
        told = annotations_of(cluster.get("node", cluster.node_name))[vendor.node.register]
        assert vendor.node.encoding is not None
        cards = register.decode(told, vendor.node.encoding, cluster.node_name)
        taken = Counter(
            device.id
            for pod in cluster.get("pods")["items"]
            if pod["status"]["phase"] not in ("Failed", "Succeeded")
            for devices in Assignment.parse(
                annotations_of(pod).get(vendor.pods.allocated, "")
            ).containers
            for device in devices
        )
        return [card.id for card in cards if card.healthy and taken[card.id] < card.count]


def _told_of_templates(
    vendor: HamiVendor, containers: Sequence[tuple[AssignedDevice, ...]]
) -> dict[str, str]:
    """What the scheduler writes for Ascend's plugin; none of these devices is cut by a template."""
    if vendor.maker != "ascend":
        return {}
    rows = [{"UUID": device.id} for devices in containers for device in devices]
    return {f"huawei.com/{vendor.word}": json.dumps(rows)}


@contextmanager
def scheduling(node: Mock, **options: Any) -> Iterator[ByScheduler]:
    """HAMi's own scheduler, where there is one."""
    try:
        hami_scheduler()
    except RequirementsMissing as missing:
        # Not a failure in CI either: the program can't be had everywhere.
        pytest.skip("; ".join(missing.sentences))
    with running_hami(node.machine, **options) as hami:
        yield ByScheduler(node, hami)
