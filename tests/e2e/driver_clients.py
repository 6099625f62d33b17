"""Clients of NVML in pods: one that stays, one for musl, and NVIDIA's own plugin and discovery."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.judges.go_programs import PLUGIN, go_program

from .harness import Cluster, ClusterApi, Progress
from .harness.base_image import base_image
from .harness.musl import LOADER, compile_for_musl, musl_loader
from .harness.small_images import write_image_of
from .mock import NAMESPACE, container

MUSL = "hami-mock.invalid/musl-cards:e2e"
NVIDIA_PLUGIN = "hami-mock.invalid/nvidia-device-plugin:e2e"
DRIVER_ROOT = "/var/lib/hami-mock/driver"
UNPRIVILEGED = {
    "runAsUser": 65534,
    "runAsGroup": 65534,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_PROGRAMS = Path(__file__).parent / "in_pods"


@dataclass(frozen=True)
class Card:
    """What NVML says of a card: MiB, percent and W."""

    uuid: str
    total: int
    used: int
    busy: int
    power: float


class NvmlInPod:
    """A process in a container that has NVML open."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def look(self) -> list[Card]:
        """Return the cards that it sees now."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "NVML in the pod has ended"
        return [Card(**card) for card in json.loads(line)]


@contextmanager
def nvml_in(cluster: ClusterApi, pod: str, container: str = "main") -> Iterator[NvmlInPod]:
    """Open NVML in a container that has Python."""
    source = (_PROGRAMS / "nvml.py").read_text()
    command = ["exec", "--stdin", pod, f"--container={container}", "--", "python3", "-c", source]
    with subprocess.Popen(
        cluster.kubectl_argv(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield NvmlInPod(process)
        finally:
            process.kill()


def client(name: str, image: str, command: list[str], **requests: int) -> dict[str, Any]:
    """A container with a card and no rights."""
    wants = requests or {"gpu": 1}
    made = container(name, {f"nvidia.com/{what}": count for what, count in wants.items()})
    return {**made, "image": image, "command": command, "securityContext": UNPRIVILEGED}


def load_musl_client(cluster: Cluster) -> None:
    """Load an image of musl and one program. Raises RequirementsMissing if it can't be made."""
    with tempfile.TemporaryDirectory(prefix="hami-mock-e2e-") as scratch:
        program, archive = Path(scratch) / "cards", Path(scratch) / "image.tar"
        compile_for_musl(_PROGRAMS / "cards.c", program)
        files = {LOADER: musl_loader().read_bytes(), "bin/cards": program.read_bytes()}
        write_image_of(files, MUSL, archive, base=None)
        cluster.load_image(archive)


def load_nvidia_plugin(cluster: Cluster, progress: Progress) -> None:
    """Load an image of NVIDIA's plugin and discovery. Raises RequirementsMissing."""
    files = {f"usr/bin/{name}": go_program(PLUGIN, name).read_bytes() for name in PLUGIN.programs}
    # What discovery takes the machine's maker from, where there is no firmware to ask.
    files["etc/machine-type"] = b"hami-mock\n"
    with tempfile.TemporaryDirectory(prefix="hami-mock-e2e-") as scratch:
        archive = Path(scratch) / "image.tar"
        write_image_of(files, NVIDIA_PLUGIN, archive, base_image(progress))
        cluster.load_image(archive)


def nvidia_plugin() -> dict[str, Any]:
    """NVIDIA's DaemonSet, as one writes it for a driver that isn't at its usual place."""
    root = "/driver-root"
    confined = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    driver = {"name": "driver", "mountPath": root, "readOnly": True}
    sockets = "/var/lib/kubelet/device-plugins"
    plugin = {
        "name": "plugin",
        "image": NVIDIA_PLUGIN,
        "command": ["nvidia-device-plugin"],
        "args": [f"--driver-root={DRIVER_ROOT}", f"--driver-root-ctr-path={root}"],
        "securityContext": confined,
        "volumeMounts": [driver, {"name": "sockets", "mountPath": sockets}],
    }
    discovery = {
        "name": "discovery",
        "image": NVIDIA_PLUGIN,
        "command": ["gpu-feature-discovery"],
        # Unlike the plugin it doesn't look for the library in the driver root.
        "env": [{"name": "LD_LIBRARY_PATH", "value": f"{root}/lib64"}],
        "args": [
            f"--driver-root-ctr-path={root}",
            "--use-node-feature-api=false",
            "--no-timestamp",
            "--machine-type-file=/etc/machine-type",
            "--output-file=/features/gfd",
        ],
        "securityContext": confined,
        "volumeMounts": [driver, {"name": "features", "mountPath": "/features"}],
    }
    labels = {"app": "nvidia-device-plugin"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-device-plugin", "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [plugin, discovery],
                    "terminationGracePeriodSeconds": 5,
                    "automountServiceAccountToken": False,
                    "tolerations": [{"operator": "Exists"}],
                    "volumes": [
                        {"name": "driver", "hostPath": {"path": DRIVER_ROOT}},
                        {"name": "sockets", "hostPath": {"path": sockets}},
                        {"name": "features", "emptyDir": {}},
                    ],
                },
            },
        },
    }
