"""Names, paths and addresses inside a sandbox. They may be fixed: its namespaces are its own."""

from __future__ import annotations

from pathlib import Path

STATE = Path("/run/hami-mock")
LOGS = STATE / "logs"
PKI = STATE / "pki"
CONFIG = STATE / "config"
CNI_CONFIG = STATE / "cni"
ETCD_DATA = STATE / "etcd"
TEMPORARY = STATE / "tmp"
HOME = STATE / "home"

KUBELET_ROOT = Path("/var/lib/kubelet")
CONTAINERD_ROOT = Path("/var/lib/containerd")
CONTAINERD_SOCKET = Path("/run/containerd/containerd.sock")
# Where drivers leave specs for the runtime; /var/run is /run, which the sandbox has of its own.
CDI_SPECS = Path("/var/run/cdi")

STATE_FOLDERS = (
    LOGS,
    PKI,
    CONFIG,
    CNI_CONFIG,
    ETCD_DATA,
    TEMPORARY,
    HOME,
    STATE / KUBELET_ROOT.name,
    STATE / CONTAINERD_ROOT.name,
    STATE / "var-lib" / "upper",
    STATE / "var-lib" / "work",
)

NODE_NAME = "mock-node"
BRIDGE = "cni0"
BRIDGE_ADDRESS = "02:00:00:00:00:01"
NODE_IP = "10.244.0.1"
NODE_CIDR = f"{NODE_IP}/24"
POD_CIDR = "10.244.0.0/24"
# The first address of the service range is the one that Kubernetes gives to its API server.
SERVICE_CIDR = "10.96.0.0/24"
API_SERVICE_IP = "10.96.0.1"
API_PORT = 443
ETCD_URL = "http://127.0.0.1:2379"
ETCD_PEER_URL = "http://127.0.0.1:2380"
