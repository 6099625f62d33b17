"""containerd and the kubelet: their settings and their daemons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import pki
from .daemon import SEARCH_PATH, Daemon
from .layout import (
    API_SERVICE_IP,
    BRIDGE,
    CDI_SPECS,
    CNI_CONFIG,
    CONFIG,
    CONTAINERD_ROOT,
    CONTAINERD_SOCKET,
    KUBELET_ROOT,
    NODE_IP,
    NODE_NAME,
    POD_CIDR,
    STATE,
)
from .sandbox import Sandbox
from .small_images import PAUSE

CNI_PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
CONTAINERD_CONFIG = CONFIG / "containerd.toml"
KUBELET_CONFIG = CONFIG / "kubelet.json"
CAP_SYS_RESOURCE = 24


def containerd(sandbox: Sandbox, programs: Path | None = None) -> Daemon:
    """Debian's, or one of this folder, which reads CDI specs."""
    sandbox.outside(CONTAINERD_CONFIG).write_text(_containerd_config(with_cdi=bool(programs)))
    network = {
        "cniVersion": "0.4.0",
        "name": "e2e",
        "plugins": [
            {
                "type": "bridge",
                "bridge": BRIDGE,
                "isGateway": True,
                # Nothing is beyond the bridge, so nothing needs another address (or iptables).
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": POD_CIDR, "gateway": NODE_IP}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }
    sandbox.outside(CNI_CONFIG / "10-e2e.conflist").write_text(json.dumps(network))
    argv: list[str | Path] = ["containerd", "--config", CONTAINERD_CONFIG]
    # It finds its shim by the search path too, where Debian's would come first.
    env = {"PATH": f"{programs}:{SEARCH_PATH}"} if programs else None
    return Daemon(sandbox, "containerd", argv, env=env)


def cni_plugin_folder() -> Path | None:
    for folder in CNI_PLUGIN_FOLDERS:
        if all((folder / plugin).exists() for plugin in ("bridge", "host-local", "loopback")):
            return folder
    return None


def _containerd_config(*, with_cdi: bool) -> str:
    # Without this capability nobody may lower an OOM score, which sandboxes otherwise ask for.
    restrict_oom = "false" if _capable(CAP_SYS_RESOURCE) else "true"
    cdi = f'cdi_spec_dirs = ["{CDI_SPECS}"]' if with_cdi else ""
    return f"""\
version = 2
root = "{CONTAINERD_ROOT}"
state = "{CONTAINERD_SOCKET.parent}"
[grpc]
address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
path = "{STATE}/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = {restrict_oom}
{cdi}
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni_plugin_folder()}"
conf_dir = "{CNI_CONFIG}"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def _capable(capability: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False


def kubelet(sandbox: Sandbox, binaries: Path) -> Daemon:
    argv: list[str | Path] = [
        binaries / "kubelet",
        f"--config={KUBELET_CONFIG}",
        f"--kubeconfig={pki.kubeconfig(pki.KUBELET)}",
        f"--root-dir={KUBELET_ROOT}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={NODE_IP}",
        "--v=2",
    ]
    return Daemon(sandbox, "kubelet", argv)


def write_kubelet_config(sandbox: Sandbox, feature_gates: Mapping[str, bool]) -> None:
    """Write the settings that the next start of the kubelet reads."""
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        # Reachable from inside the sandbox only: no need for certificates between the two.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{sandbox.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        # A nearly full disk of the machine is no reason to evict a test's pods or images.
        "evictionHard": {"memory.available": "50Mi"},
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        # Nobody answers names there: a pod's look-up is refused at once instead of timing out.
        "clusterDNS": [API_SERVICE_IP],
        "resolvConf": "",
        "volumePluginDir": str(KUBELET_ROOT / "volume-plugins"),
        "featureGates": dict(feature_gates),
    }
    sandbox.outside(KUBELET_CONFIG).write_text(json.dumps(settings, indent=1))
