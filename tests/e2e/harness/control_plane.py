"""etcd, the API server, the controller manager and the scheduler."""

from __future__ import annotations

from pathlib import Path

from . import pki
from .daemon import Daemon
from .layout import API_PORT, ETCD_DATA, ETCD_PEER_URL, ETCD_URL, NODE_IP, SERVICE_CIDR
from .sandbox import Sandbox


def etcd(sandbox: Sandbox) -> Daemon:
    argv = [
        "etcd",
        "--name=e2e",
        f"--data-dir={ETCD_DATA}",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        f"--listen-peer-urls={ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={ETCD_PEER_URL}",
        f"--initial-cluster=e2e={ETCD_PEER_URL}",
    ]
    return Daemon(sandbox, "etcd", argv)


def api_server(sandbox: Sandbox, binaries: Path) -> Daemon:
    argv: list[str | Path] = [
        binaries / "kube-apiserver",
        f"--etcd-servers={ETCD_URL}",
        f"--secure-port={API_PORT}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={NODE_IP}",
        # Pods reach the server at an address of the sandbox itself, without any endpoints.
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        f"--tls-cert-file={pki.SERVING_CERTIFICATE}",
        f"--tls-private-key-file={pki.SERVING_KEY}",
        f"--token-auth-file={pki.TOKENS}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki.ACCOUNT_KEY}",
        f"--service-account-key-file={pki.ACCOUNT_KEY}",
        "--allow-privileged=true",
        # The node's name is known to no name server.
        "--kubelet-preferred-address-types=InternalIP",
    ]
    return Daemon(sandbox, "kube-apiserver", argv)


def controller_manager(sandbox: Sandbox, binaries: Path) -> Daemon:
    config = pki.kubeconfig(pki.CONTROLLER_MANAGER)
    argv: list[str | Path] = [
        binaries / "kube-controller-manager",
        f"--kubeconfig={config}",
        "--leader-elect=false",
        # Each controller with the rights that Kubernetes itself gives it.
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki.ACCOUNT_KEY}",
        f"--root-ca-file={pki.CA_CERTIFICATE}",
    ]
    return Daemon(sandbox, "kube-controller-manager", argv)


def scheduler(sandbox: Sandbox, binaries: Path) -> Daemon:
    config = pki.kubeconfig(pki.SCHEDULER)
    program = binaries / "kube-scheduler"
    return Daemon(
        sandbox, "kube-scheduler", [program, f"--kubeconfig={config}", "--leader-elect=false"]
    )
