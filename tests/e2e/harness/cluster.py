"""A running cluster, and what a test can do with it."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from . import control_plane, node, pki
from .api import ClusterApi
from .binaries import kubernetes_binaries, version_of
from .commands import run
from .daemon import Daemon
from .feature_gates import gate_flags
from .layout import CONFIG, CONTAINERD_SOCKET, HOME, KUBELET_ROOT, LOGS, NODE_NAME
from .progress import Progress
from .requirements import ensure_requirements
from .sandbox import Sandbox
from .small_images import write_small_images
from .versions import KubernetesVersion

State = TypeVar("State")

START_TIMEOUT_S = 90.0
KUBECTL_TIMEOUT_S = 60.0
IMPORT_TIMEOUT_S = 300.0
HTTP_TIMEOUT_S = 10.0


class Cluster(ClusterApi):
    """One node with its control plane. Make it with `Cluster.start`."""

    def __init__(
        self,
        version: KubernetesVersion,
        binaries: Path,
        sandbox: Sandbox,
        runtime: Path | None = None,
    ) -> None:
        self.version = version
        self.node_name = NODE_NAME
        self._gates: dict[str, bool] = {}
        self._binaries = binaries
        self._sandbox = sandbox
        self._runtime = runtime
        self._kubelet_started = 0.0
        self._guests: list[Daemon] = []
        self._etcd = control_plane.etcd(sandbox)
        self._api_server = control_plane.api_server(sandbox, binaries)
        self._controllers = control_plane.controller_manager(sandbox, binaries)
        self._scheduler = control_plane.scheduler(sandbox, binaries)
        self.containerd = node.containerd(sandbox, runtime)
        self.kubelet = node.kubelet(sandbox, binaries)

    @classmethod
    @contextmanager
    def start(
        cls,
        version: KubernetesVersion,
        progress: Progress,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        runtime: Path | None = None,
    ) -> Iterator[Cluster]:
        """Bring a cluster up; it is gone, with all that it made, when the block ends.

        `runtime` is a folder with another containerd than Debian's (`containerd_with_cdi`).
        Raises RequirementsMissing when the machine can't run one.
        """
        ensure_requirements(version, progress)
        binaries = kubernetes_binaries(version, progress)
        with progress.step("make the sandbox"):
            sandbox = Sandbox.start()
        try:
            cluster = cls(version_of(binaries), binaries, sandbox, runtime)
            cluster._gates.update(feature_gates or {})
            cluster._bring_up(progress)
            yield cluster
        finally:
            with progress.step("remove the cluster"):
                sandbox.close()

    def _bring_up(self, progress: Progress) -> None:
        with progress.step(f"start the control plane of Kubernetes {self.version}"):
            pki.create(self._sandbox)
            self._etcd.start()
            self.containerd.start()
            self._start_control_plane()
        with progress.step("start the node"):
            self._load_small_images()
            self.start_kubelet()
            self.wait_node_ready(timeout=START_TIMEOUT_S)
        with progress.step("wait for the default service account"):
            self.wait(
                "the default service account",
                lambda: self.get("serviceaccount", "default"),
                bool,
                timeout=START_TIMEOUT_S,
            )

    def _start_control_plane(self) -> None:
        flags = gate_flags(self._gates)
        self._api_server.start(*flags)
        self.wait(
            "the API server",
            lambda: self.kubectl("get", "--raw=/readyz"),
            lambda answer: answer == "ok",
            timeout=START_TIMEOUT_S,
        )
        self._controllers.start(*flags)
        self._scheduler.start(*flags)

    @contextmanager
    def feature_gates(self, gates: Mapping[str, bool]) -> Iterator[None]:
        """Set feature gates in all of Kubernetes for the time of the block; pods go on meanwhile.

        Without any gates nothing is restarted.
        """
        if not gates:
            yield
            return
        before = self._gates
        try:
            self._restart_with({**before, **gates})
            yield
        finally:
            self._restart_with(before)

    def _restart_with(self, gates: dict[str, bool]) -> None:
        self._gates = gates
        for daemon in (self.kubelet, self._scheduler, self._controllers, self._api_server):
            daemon.stop()
        self._start_control_plane()
        self.start_kubelet()
        self.wait_node_ready(timeout=START_TIMEOUT_S)

    # --- the API -------------------------------------------------------------------------

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, readable from outside the sandbox."""
        return self._sandbox.outside(pki.kubeconfig(pki.ADMIN))

    def kubectl_argv(self, *words: str | Path) -> list[str]:
        """How a person, or a test that wants the process itself, calls kubectl."""
        files = (
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self._sandbox.outside(HOME)}",  # otherwise in the caller's home
        )
        return self._sandbox.network_argv([self._binaries / "kubectl", *files, *words])

    def client_argv(self, program: Path, *words: str | Path) -> list[str]:
        """How another client of the API server, such as helm, is called."""
        return self._sandbox.network_argv([program, f"--kubeconfig={self.kubeconfig}", *words])

    def check(self) -> None:
        """A daemon that died is reported at once."""
        for daemon in self.daemons:
            daemon.check()

    def wait_node_ready(self, *, timeout: float) -> Any:
        """Wait until this kubelet, not an earlier one, has said that it is ready."""
        return self.wait(
            "the node Ready",
            lambda: self.get("node", self.node_name),
            lambda told: _ready_since(told, self._kubelet_started),
            timeout=timeout,
            show=lambda told: told["status"].get("conditions"),
        )

    # --- the node ------------------------------------------------------------------------

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        return (
            self._etcd,
            self._api_server,
            self._controllers,
            self._scheduler,
            self.containerd,
            self.kubelet,
            *self._guests,
        )

    def owns(self, pid: int) -> bool:
        """Tell whether a process of the machine runs in a pod of this cluster."""
        return self._sandbox.name in Path(f"/proc/{pid}/cgroup").read_text()

    @property
    def device_plugin_dir(self) -> Path:
        """The kubelet's device-plugins folder, as a path of the machine."""
        return self._sandbox.outside(KUBELET_ROOT / "device-plugins")

    def start_kubelet(self) -> None:
        """Start it with the settings of now; `wait_node_ready` tells when it is there."""
        node.write_kubelet_config(self._sandbox, self._gates)
        self._kubelet_started = time.time()
        self.kubelet.start()

    def kill_kubelet(self) -> None:
        self.kubelet.stop(signal.SIGKILL)

    def restart_kubelet(self) -> None:
        """Stop it in order and start it again; `wait_node_ready` tells when it is back."""
        self.kubelet.stop()
        self.start_kubelet()

    def restart_containerd(self) -> None:
        """Pods go on meanwhile; returns when it answers again."""
        self.containerd.stop()
        self.containerd.start()
        self.wait("containerd", lambda: self.ctr("version"), bool, timeout=START_TIMEOUT_S)

    def kubelet_log(self) -> str:
        return self.kubelet.log()

    def save_logs(self, folder: Path) -> None:
        """Copy the daemons' logs out: they go away with the cluster."""
        shutil.copytree(self._sandbox.outside(LOGS), folder, dirs_exist_ok=True)

    def ctr(self, *words: str) -> str:
        return run(self._sandbox.argv(self._ctr_command(*words)))

    def load_image(self, archive: Path) -> None:
        """Import an image archive (docker-archive or OCI) under the names that it holds."""
        command = self._ctr_command("images", "import", "--digests=false", "-")
        with archive.open("rb") as file:
            run(self._sandbox.argv(command), stdin_file=file, timeout=IMPORT_TIMEOUT_S)

    def run_in_sandbox(self, *command: str | Path) -> str:
        """Run a program of the machine as if on the node."""
        return run(self._sandbox.argv(command))

    # --- more daemons, beside the cluster's own ------------------------------------------

    def program(self, name: str) -> Path:
        """One of the Kubernetes programs that this cluster is made of."""
        return self._binaries / name

    def daemon(
        self, name: str, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
    ) -> Daemon:
        """One more daemon for the sandbox, not started yet; it logs where the others do."""
        return Daemon(self._sandbox, name, argv, env=env)

    @contextmanager
    def also_running(self, daemon: Daemon) -> Iterator[None]:
        """Run it for the time of the block; if it dies, `check` says so."""
        self._guests.append(daemon)
        try:
            daemon.start()
            yield
        finally:
            self._guests.remove(daemon)
            daemon.stop()

    def write_config(self, name: str, settings: Mapping[str, Any]) -> Path:
        """Write a daemon's settings as JSON; return the path as the daemon sees it."""
        path = CONFIG / name
        self._sandbox.outside(path).write_text(json.dumps(settings, indent=1))
        return path

    def http_get(self, url: str) -> str:
        """GET from a daemon in the cluster's network. Raises CommandFailed if it isn't 200."""
        # The certificates of these servers are their own; nobody else can answer there.
        quietly = ["-q", "-Y", "off", "--no-check-certificate", "-O", "-"]
        command = ["busybox", "wget", *quietly, url]
        return run(self._sandbox.network_argv(command), timeout=HTTP_TIMEOUT_S)

    def _ctr_command(self, *words: str) -> list[str]:
        program = self._runtime / "ctr" if self._runtime else "ctr"
        return [str(program), f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io", *words]

    def _load_small_images(self) -> None:
        self.wait("containerd", lambda: self.ctr("version"), bool, timeout=START_TIMEOUT_S)
        with tempfile.TemporaryDirectory(prefix="hami-mock-e2e-") as scratch:
            archive = Path(scratch) / "small-images.tar"
            write_small_images(archive)
            self.load_image(archive)


def _ready_since(told: Mapping[str, Any], started: float) -> bool:
    for condition in told["status"].get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] == "True":
            # Kubernetes tells whole seconds.
            heartbeat = datetime.fromisoformat(condition["lastHeartbeatTime"]).timestamp()
            return heartbeat >= int(started)
    return False
