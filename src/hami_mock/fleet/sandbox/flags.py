"""What each program is started with: flags for thousands of nodes on a small machine. Pure."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hami_mock.fleet.sandbox.programs import Programs

LEASE_SECONDS = 400
"""KWOK renews a lease after a quarter of it: with 40 s, 5,000 nodes are 500 writes a second, and
thousands of them are late."""
GRACE_SECONDS = 900
"""More than two leases: only who fails on purpose becomes unknown."""
REQUESTS_PER_SECOND = 1000


@dataclass(frozen=True)
class Places:
    """The ports and the folder of a sandbox."""

    folder: Path
    api: int
    etcd: int
    etcd_peer: int

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.api}"

    @property
    def authority(self) -> Path:
        """The certificate that the API server makes for itself."""
        return self.folder / "pki" / "apiserver.crt"

    @property
    def key(self) -> Path:
        """Its key, by which service accounts are signed too: it makes it before it reads it."""
        return self.folder / "pki" / "apiserver.key"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    @property
    def audit_policy(self) -> Path:
        return self.folder / "audit-policy.json"

    @property
    def scheduler_config(self) -> Path:
        return self.folder / "kube-scheduler.json"

    @property
    def kwok_config(self) -> Path:
        return self.folder / "kwok.yaml"

    def kubeconfig(self, user: str) -> Path:
        return self.folder / f"{user}.kubeconfig"


def etcd(programs: Programs, places: Places) -> list[str | Path]:
    client = f"http://127.0.0.1:{places.etcd}"
    peer = f"http://127.0.0.1:{places.etcd_peer}"
    return [
        programs.etcd,
        "--name=sandbox",
        f"--data-dir={places.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=sandbox={peer}",
        f"--quota-backend-bytes={8 * 2**30}",
    ]


def api_server(programs: Programs, places: Places, audit: bool) -> list[str | Path]:
    audited = (
        f"--audit-policy-file={places.audit_policy}",
        f"--audit-log-path={places.audit_log}",
    )
    return [
        programs.kube_apiserver,
        f"--etcd-servers=http://127.0.0.1:{places.etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={places.api}",
        f"--cert-dir={places.key.parent}",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/24",
        f"--token-auth-file={places.tokens}",
        # Whoever has a token may do all, and nobody else may do anything.
        "--authorization-mode=AlwaysAllow",
        "--anonymous-auth=false",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={places.key}",
        f"--service-account-key-file={places.key}",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
        # With etcd 3.4 a watch that begins with a list is refused again and again.
        "--feature-gates=WatchList=false",
        "--event-ttl=10m",
        *(audited if audit else ()),
    ]


def controller_manager(programs: Programs, places: Places) -> list[str | Path]:
    return [
        programs.kube_controller_manager,
        f"--kubeconfig={places.kubeconfig('kube-controller-manager')}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--service-account-private-key-file={places.key}",
        f"--root-ca-file={places.authority}",
        f"--node-monitor-grace-period={GRACE_SECONDS}s",
        f"--kube-api-qps={REQUESTS_PER_SECOND}",
        f"--kube-api-burst={REQUESTS_PER_SECOND}",
    ]


def scheduler(programs: Programs, places: Places) -> list[str | Path]:
    return [programs.kube_scheduler, f"--config={places.scheduler_config}", "--secure-port=0"]


def scheduler_config(places: Places) -> str:
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(places.kubeconfig("kube-scheduler")),
                "qps": REQUESTS_PER_SECOND,
                "burst": REQUESTS_PER_SECOND,
            },
            # The default looks at a sample of many nodes: a pod that fits on one may wait for ever.
            "percentageOfNodesToScore": 100,
        }
    )


def kwok(programs: Programs, places: Places) -> list[str | Path]:
    return [
        programs.kwok,
        f"--kubeconfig={places.kubeconfig('kwok')}",
        f"--config={places.kwok_config}",
        # Nobody asks its nodes for logs.
        "--node-port=0",
    ]


def audit_policy() -> str:
    """Return what is written down: who writes nodes and pods, and how often."""
    written: dict[str, Any] = {
        "level": "Metadata",
        "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        "resources": [
            {"group": "", "resources": ["nodes", "nodes/status", "pods", "pods/status"]},
            {"group": "resource.k8s.io"},
        ],
        "omitStages": ["RequestReceived"],
    }
    rules = [written, {"level": "None"}]
    return json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules})
