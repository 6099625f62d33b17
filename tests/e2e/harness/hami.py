"""The real HAMi scheduler in a cluster, beside the cluster's own: for pods that ask for it by name.

Two more daemons: HAMi's scheduler, and a kube-scheduler that asks it which node and cards a pod
gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from . import pki
from .cluster import Cluster
from .daemon import Daemon
from .hami_config import (
    SCHEDULER_NAME,
    default_device_config,
    kube_scheduler_config,
    managed_resources,
    vendor_flags,
)
from .hami_program import hami_scheduler

EXTENDER_ADDRESS = "127.0.0.1:38080"
METRICS_ADDRESS = "127.0.0.1:39395"
KUBE_SCHEDULER_PORT = 10260  # the cluster's own has 10259
READY_TIMEOUT_S = 60.0
# It looks at changed nodes every 15 s.
CARDS_TIMEOUT_S = 45.0
# Its default of 5 requests a second is used up by the handshakes of one node with all vendors.
REQUESTS_PER_S = 200

HANDSHAKES = "hami.io/node-handshake"
NODE_LOCK = "hami.io/mutex.lock"
CAMBRICON_LOCK = "cambricon.com/dsmlu.lock"


class Hami:
    """HAMi's scheduler while it runs. Make it with `running_hami`."""

    def __init__(
        self,
        cluster: Cluster,
        scheduler: Daemon,
        kube_scheduler: Daemon,
        device_config: Mapping[str, Any],
    ) -> None:
        self.cluster = cluster
        self.scheduler = scheduler
        self.kube_scheduler = kube_scheduler
        self.device_config = device_config

    @property
    def scheduler_name(self) -> str:
        """What a pod must have as its schedulerName."""
        return SCHEDULER_NAME

    @property
    def managed_resources(self) -> list[str]:
        return managed_resources(self.device_config)

    def log(self) -> str:
        """What HAMi's scheduler has written; the kube-scheduler's is `kube_scheduler.log()`."""
        return self.scheduler.log()

    def metrics(self) -> str:
        return self.cluster.http_get(f"http://{METRICS_ADDRESS}/metrics")

    def cards(self) -> dict[str, set[str]]:
        """Node → the UUIDs of the cards that the scheduler reckons with there."""
        found: dict[str, set[str]] = {}
        for family in text_string_to_metric_families(self.metrics()):
            for sample in family.samples:
                if sample.name == "hami_gpu_memory_limit_bytes":
                    found.setdefault(sample.labels["node"], set()).add(sample.labels["device_uuid"])
        return found

    def wait_for_cards(
        self, node: str, uuids: set[str], *, timeout: float = CARDS_TIMEOUT_S
    ) -> None:
        """Wait until it has taken exactly these cards from the node's annotations.

        It makes MetaX's cards up from the node's capacity, where the kubelet keeps them for minutes
        after the case that had them: they don't count.

        Cards don't go when their annotation does: only a handshake that nobody answers for 60 s,
        on a node that has none of their resource to give, makes it forget them.
        """
        self.cluster.wait(
            f"the cards of {node} in HAMi's scheduler",
            self.cards,
            lambda cards: (
                {uuid for uuid in cards.get(node, ()) if not uuid.startswith(f"{node}-metax-")}
                == uuids
            ),
            timeout=timeout,
        )

    def wait_until_ready(self) -> None:
        """Both answer. HAMi's keeps a pod waiting until it has looked at the nodes."""
        for what, url in (
            ("HAMi's scheduler", f"http://{EXTENDER_ADDRESS}/readyz"),
            ("HAMi's metrics", f"http://{METRICS_ADDRESS}/metrics"),
            ("HAMi's kube-scheduler", f"https://127.0.0.1:{KUBE_SCHEDULER_PORT}/readyz"),
        ):
            answers = partial(self.cluster.http_get, url)
            self.cluster.wait(what, answers, lambda _: True, timeout=READY_TIMEOUT_S)

    def restart(self) -> None:
        """Stop HAMi's scheduler and start it again: it must learn all from the annotations.

        It takes cards anew from a node that has written its handshake since, or, NVIDIA's only,
        from one that has some of the resource that counts them to give.
        """
        self.scheduler.stop()
        self.scheduler.start()
        self.wait_until_ready()


@contextmanager
def running_hami(
    cluster: Cluster,
    *,
    device_config: Mapping[str, Any] | None = None,
    node_policy: str = "binpack",
    gpu_policy: str = "spread",
    arguments: Sequence[str] = (),
) -> Iterator[Hami]:
    """Run HAMi's scheduler in the cluster for the time of the block.

    The policies are HAMi's defaults; a pod overrides them with its annotations
    hami.io/node-scheduler-policy and hami.io/gpu-scheduler-policy. `arguments` are more flags.
    Afterwards what the scheduler wrote on nodes is gone; what the test wrote stays.
    Raises RequirementsMissing when there is no such program here.
    """
    program = hami_scheduler()
    config = default_device_config() if device_config is None else device_config
    scheduler = cluster.daemon(
        "hami-scheduler",
        [
            program,
            f"--http_bind={EXTENDER_ADDRESS}",
            f"--metrics-bind-address={METRICS_ADDRESS}",
            f"--scheduler-name={SCHEDULER_NAME}",
            # JSON is YAML, too.
            f"--device-config-file={cluster.write_config('hami-devices.json', config)}",
            f"--node-scheduler-policy={node_policy}",
            f"--gpu-scheduler-policy={gpu_policy}",
            f"--kube-qps={REQUESTS_PER_S}",
            f"--kube-burst={REQUESTS_PER_S}",
            "-v=4",
            *vendor_flags(config),
            *arguments,
        ],
        env={"KUBECONFIG": str(pki.kubeconfig(pki.ADMIN))},
    )
    asking = kube_scheduler_config(
        config,
        extender_url=f"http://{EXTENDER_ADDRESS}",
        kubeconfig=pki.kubeconfig(pki.SCHEDULER),
    )
    kube_scheduler = cluster.daemon(
        "hami-kube-scheduler",
        [
            cluster.program("kube-scheduler"),
            f"--config={cluster.write_config('hami-kube-scheduler.json', asking)}",
            f"--secure-port={KUBE_SCHEDULER_PORT}",
        ],
    )
    try:
        with cluster.also_running(scheduler), cluster.also_running(kube_scheduler):
            hami = Hami(cluster, scheduler, kube_scheduler, config)
            hami.wait_until_ready()
            yield hami
    finally:
        _remove_traces(cluster)


def _remove_traces(cluster: Cluster) -> None:
    """It marks every node for every vendor, and a pod that never started leaves its lock."""
    for node in cluster.get("nodes")["items"]:
        metadata = node["metadata"]
        left = [
            f"{key}-"
            for key in metadata.get("annotations", ())
            if key.startswith(HANDSHAKES) or key in (NODE_LOCK, CAMBRICON_LOCK)
        ]
        if left:
            cluster.kubectl("annotate", "node", metadata["name"], *left)
