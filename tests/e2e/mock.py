"""The agent in a cluster: deployed from the project's own manifests, looked at from outside."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from tests.server_sent_events import messages

from .harness import WORKLOAD, Cluster, ClusterApi
from .harness.api import KUBECTL_TIMEOUT_S
from .harness.errors import CommandFailed
from .harness.quantities import whole_number

ROOT = Path(__file__).parent.parent.parent
MANIFESTS = ROOT / "manifests"
EXAMPLES = ROOT / "examples" / "pods"
OVERLAYS = ROOT / "overlays"
RBAC, PLUGIN = MANIFESTS / "k8s-mock-rbac.yaml", MANIFESTS / "k8s-mock-plugin.yaml"
IMAGE = "docker.io/library/hami-mock:0.1.0"
NAMESPACE = "kube-system"
CONFIG_MAP = "hami-mock-config"
DAEMON_SETS = ("hami-mock", "hami-mock-device-plugin-daemonset")
AGENT_PROGRAM = b"/opt/hami-mock/bin/"
TIMEOUT_S = 90.0
UNITS_IN_STATUS = "hami-mock.io/units-in-status"
UNITS = re.compile("/.*(mem|core)", re.IGNORECASE)
"""What the names of units have in common."""
STATUS_LISTS_DEVICES = 36
"""From this minor version on, all units go into the Node's status."""
BY_STATUS = frozenset({"--hami=on", "--source=hami", "--units=status"})
"""With any of these they go there on older ones too."""

ONLY_NVIDIA = ("--mlu-cards=0", "--iluvatar-cards=0", "--ascend-cards=0")


def nvidia_counts(cards: int, memory: int) -> dict[str, int]:
    """What a node with so many cards of so many units each must show."""
    return {
        "nvidia.com/gpu": cards * 10,
        "nvidia.com/gpucores": cards * 100,
        "nvidia.com/gpumem": cards * memory,
        "nvidia.com/gpumem-percentage": cards * 100,
    }


@dataclass
class Figures:
    """What was measured, for the table at the end."""

    rows: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def add(self, release: object, what: str, value: float, unit: str = "s") -> None:
        self.rows.setdefault((str(release), what), []).append(value)
        self.units[what] = unit

    def table(self) -> list[str]:
        """The lines of a Markdown table, for the terminal and for docs/performance.md."""
        lines = ["| release | figure | n | median | worst |", "|---|---|---|---|---|"]
        for (release, what), values in sorted(self.rows.items()):
            unit = self.units[what]
            shown = (f"{number:.2f} {unit}".strip() for number in (median(values), max(values)))
            lines.append(f"| {release} | {what} | {len(values)} | {' | '.join(shown)} |")
        return lines


class NotThere(OSError):
    """Something isn't there, or not yet: who waits for it looks again."""


class Mock:
    """The agent's DaemonSet in one cluster."""

    def __init__(self, cluster: ClusterApi, image: str = IMAGE) -> None:
        self.cluster = cluster
        self.image = image

    @property
    def machine(self) -> Cluster:
        """The cluster as one whose daemons we may kill; a test that asks for it needs our own."""
        if not isinstance(self.cluster, Cluster):
            pytest.skip("this needs a cluster of our own: its daemons or files are touched")
        return self.cluster

    def deploy(
        self,
        *args: str,
        config: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        without: str = "",
        forgets_plugins: bool = True,
    ) -> None:
        """Apply the project's manifests, with other flags, and maybe a file or variables.

        `without` is what the agent may do nothing with.
        """
        documents = [d for path in (RBAC, PLUGIN) for d in yaml.safe_load_all(path.read_text())]
        for role in (each for each in documents if each["kind"] == "ClusterRole"):
            role["rules"] = [rule for rule in role["rules"] if without not in rule["resources"]]
        pod = documents[-1]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        container["args"] = ["run", *args]
        container["image"] = self.image
        container["env"] += [{"name": k, "value": v} for k, v in (env or {}).items()]
        if config is not None:
            documents.append(config_map(yaml.safe_dump(dict(config))))
            container["args"].append("--config=/etc/hami-mock/config.yaml")
            container["volumeMounts"].append({"name": "config", "mountPath": "/etc/hami-mock"})
            pod["volumes"].append({"name": "config", "configMap": {"name": CONFIG_MAP}})
        if forgets_plugins and "--units=plugin" not in args and not without:
            by_status = not BY_STATUS.isdisjoint(args) or "HAMI_MOCK_HAMI" in (env or {})
            self.forget_plugins(by_status=by_status)
        self.cluster.apply(*documents)

    @contextmanager
    def applied(self, folder: Path) -> Iterator[None]:
        """`kubectl apply -k`, with the image of this cluster; afterwards all of it is gone."""
        rendered = self.cluster.kubectl("kustomize", folder)
        self.forget_plugins(by_status="HAMI_MOCK_HAMI" in rendered)
        self.cluster.kubectl("apply", "-f", "-", stdin=self.with_image(rendered))
        try:
            yield
        finally:
            self.remove()  # before its rights, which it needs to clean up
            self.cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=rendered)

    def with_image(self, manifests: str) -> str:
        """The same, but the agent's image is the one that this cluster has."""
        documents = [document for document in yaml.safe_load_all(manifests) if document]
        for document in documents:
            if document["kind"] == "DaemonSet":
                (container,) = document["spec"]["template"]["spec"]["containers"]
                container["image"] = self.image
        return yaml.safe_dump_all(documents)

    def change_config(self, text: str) -> None:
        """Change the ConfigMap under the running agent."""
        self.cluster.apply(config_map(text))
        self.look_at_files_now()

    def look_at_files_now(self) -> None:
        """Let the kubelet notice that a ConfigMap of the agent's has changed."""
        # The kubelet looks at a pod's files about once a minute, and whenever the pod changes.
        name = self.agent_pod()["metadata"]["name"]
        self.cluster.kubectl(
            "annotate", "pod", name, f"--namespace={NAMESPACE}", "--overwrite",
            f"hami-mock/look={time.monotonic_ns()}",
        )  # fmt: skip

    def ctl(self, *words: str, stdin: str | None = None) -> str:
        """Run `hami-mock ctl` in the agent's pod, as people do."""
        return self.cluster.kubectl(*self._in_pod("ctl", *words, stdin=stdin is not None),
                                    stdin=stdin)  # fmt: skip

    def doctor(self, *words: str) -> list[dict[str, str]]:
        """Run `hami-mock doctor` in the agent's pod, with the agent's rights; return findings."""
        argv = self.cluster.kubectl_argv(*self._in_pod("doctor", *words, "-o", "json"))
        # It fails where it finds errors, such as what plugins of other cases have left.
        ran = subprocess.run(
            argv, text=True, capture_output=True, check=False, timeout=KUBECTL_TIMEOUT_S
        )
        found: list[dict[str, str]] = json.loads(ran.stdout)
        return found

    def _in_pod(self, *words: str, stdin: bool = False) -> list[str]:
        name = self.agent_pod()["metadata"]["name"]
        interactive = ["--stdin"] if stdin else []
        return [
            "exec", *interactive, name, f"--namespace={NAMESPACE}", "--", "hami-mock", *words
        ]  # fmt: skip

    def forget_plugins(self, *, by_status: bool) -> None:
        """Let the kubelet forget the units that plugins of earlier cases had, if it must.

        It would do so by itself five minutes after they have gone; until then the Node's status
        can't have them.
        """
        node = self.cluster.get("node", self.cluster.node_name)
        noted = json.loads(node["metadata"].get("annotations", {}).get(UNITS_IN_STATUS, "{}"))
        known = {n for n, c in node["status"]["capacity"].items() if UNITS.search(n) and c != "0"}
        by_status = by_status or self.cluster.version.minor >= STATUS_LISTS_DEVICES
        if by_status and known - noted.keys() and isinstance(self.cluster, Cluster):
            self.remove()
            self.machine.kill_kubelet()
            (self.machine.device_plugin_dir / "kubelet_internal_checkpoint").unlink(missing_ok=True)
            self.machine.start_kubelet()
            self.machine.wait_node_ready(timeout=60)

    def in_status(self) -> set[str]:
        """The resources that stand in the Node's status; the others have device plugins."""
        told = json.loads(self.ctl("status", "-o", "json"))["resources"]
        return {each["name"] for each in told if each["way"] == "status"}

    def remove(self) -> None:
        self.cluster.kubectl(
            "delete", "daemonset", "--ignore-not-found", f"--namespace={NAMESPACE}", *DAEMON_SETS
        )
        self.cluster.wait(
            "the agent's pods gone", self.agent_pods, lambda pods: not pods, timeout=TIMEOUT_S
        )

    def wait_for(
        self, counts: Mapping[str, int], timeout: float = TIMEOUT_S, *, most: bool = False
    ) -> float:
        """Wait until the kubelet watches all resources and the node shows these counts.

        Both are needed: for some seconds the node may still show what was true before. With `most`,
        capacity must never be above the counts meanwhile: nothing is counted twice. Returns how
        many seconds it took.
        """
        began = time.monotonic()

        def look() -> tuple[dict[str, int], dict[str, int]]:
            status = self.cluster.get("node", self.cluster.node_name)["status"]
            allocatable, capacity = (
                {name: whole_number(status[key].get(name, "0")) for name in counts}
                for key in ("allocatable", "capacity")
            )
            assert not most or all(capacity[name] <= counts[name] for name in counts), capacity
            self.agent_says("/readyz")
            return allocatable, capacity

        self.cluster.wait(
            "the counts of the agent's flags",
            look,
            lambda state: state == (dict(counts), dict(counts)),
            timeout=timeout,
        )
        return time.monotonic() - began

    def agent_says(self, path: str, port: int = 9396) -> str:
        """GET from the agent, by way of the API server. Raises CommandFailed if it isn't 200."""
        return self.cluster.kubectl("get", self._raw(path, port))

    def page_shows(self) -> Any:
        """What somebody who opens the page now sees. Raises CommandFailed if it can't be had."""
        # The stream goes on for as long as somebody reads, so kubectl wouldn't end by itself.
        command = self.cluster.kubectl_argv("get", self._raw("/events", 9396))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            too_late = threading.Timer(KUBECTL_TIMEOUT_S, process.kill)
            too_late.start()
            try:
                for name, data in messages(process.stdout):
                    if name == "snapshot":
                        return data
                raise CommandFailed(command, process.wait(), process.stderr.read().decode())
            finally:
                too_late.cancel()
                process.kill()

    def _raw(self, path: str, port: int) -> str:
        name = self.agent_pod()["metadata"]["name"]
        return f"--raw=/api/v1/namespaces/{NAMESPACE}/pods/{name}:{port}/proxy{path}"

    def agent_pods(self) -> list[Any]:
        """All pods of the agent's on the node."""
        return [
            pod
            for pod in self.cluster.get("pods", namespace=NAMESPACE)["items"]
            if pod["metadata"]["name"].startswith(DAEMON_SETS)
            and pod["spec"].get("nodeName") == self.cluster.node_name
        ]

    def agent_pod(self) -> Any:
        """The agent's newest pod on the node that isn't on its way out."""
        living = [pod for pod in self.agent_pods() if "deletionTimestamp" not in pod["metadata"]]
        if not living:
            raise NotThere("the agent has no pod")
        return max(living, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def wait_until_ready(self) -> None:
        self.cluster.wait(
            "the agent's pod Ready",
            self.agent_pod,
            lambda pod: any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in pod["status"].get("conditions", ())
            ),
            timeout=TIMEOUT_S,
            show=lambda pod: pod["status"],
        )

    def kill_agent(self) -> None:
        """SIGKILL, as the kernel would when memory runs out."""
        os.kill(self.agent_pid(), 9)

    def agent_pid(self) -> int:
        """The agent's process as the machine sees it."""
        for folder in Path("/proc").glob("[0-9]*"):
            pid = int(folder.name)
            try:
                if AGENT_PROGRAM in (folder / "cmdline").read_bytes() and self.machine.owns(pid):
                    return pid
            except OSError:
                continue  # it ended while we looked
        raise NotThere("no agent runs")

    def start_pod(
        self, name: str, requests: Mapping[str, int], *, namespace: str = "default"
    ) -> None:
        self.cluster.apply(pod(name, container("main", requests), namespace=namespace))

    def wait_for_phase(self, name: str, phase: str, timeout: float = TIMEOUT_S) -> Any:
        return self.cluster.wait(
            f"pod {name} {phase}",
            lambda: self.cluster.get("pod", name),
            lambda told: told["status"]["phase"] == phase,
            timeout=timeout,
            show=lambda told: told["status"],
        )

    def wait_for_scheduling_message(self, name: str, message: str) -> None:
        def conditions(told: Any) -> str:
            return str(told["status"].get("conditions", ""))

        self.cluster.wait(
            f"pod {name} Pending with {message!r}",
            lambda: self.cluster.get("pod", name),
            lambda told: told["status"]["phase"] == "Pending" and message in conditions(told),
            timeout=TIMEOUT_S,
            show=conditions,
        )

    def environment(self, name: str, container: str = "main") -> dict[str, str]:
        """What a container was given; it says so as soon as it runs."""
        text = self.cluster.wait(
            f"the environment of {name}",
            lambda: self.cluster.kubectl("logs", name, f"--container={container}"),
            bool,
            timeout=TIMEOUT_S,
        )
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def delete_pods(self, *names: str) -> None:
        told = "delete", "pod", *(names or ("--all",)), "--timeout=90s"
        self.cluster.kubectl(*told, timeout=100)

    def container_ids(self) -> dict[str, str]:
        """Pod that has started → its container, for telling whether a pod lived on."""
        return {
            item["metadata"]["name"]: item["status"]["containerStatuses"][0]["containerID"]
            for item in self.cluster.get("pods")["items"]
            if "containerStatuses" in item["status"]
        }


def config_map(text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
        "data": {"config.yaml": text},
    }


def workload() -> str:
    """An image that the node has, or can get."""
    return os.environ.get("E2E_WORKLOAD", WORKLOAD)


def example_pods(*names: str) -> list[dict[str, Any]]:
    """The pods of examples/pods/NAME.yaml as they are, but for the image."""
    pods = [pod for n in names for pod in yaml.safe_load_all((EXAMPLES / f"{n}.yaml").read_text())]
    for made in pods:
        for container in made["spec"]["containers"]:
            container["image"] = workload()
    return pods


def container(name: str, requests: Mapping[str, int]) -> dict[str, Any]:
    limits = {resource: str(count) for resource, count in requests.items()}
    return {"name": name, "image": workload(), "resources": {"limits": limits}}


def pod(
    name: str,
    *containers: Mapping[str, Any],
    init: Mapping[str, Any] | None = None,
    namespace: str = "default",
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": list(containers),
        "terminationGracePeriodSeconds": 1,
        "restartPolicy": "Never",
    }
    if init is not None:
        spec["initContainers"] = [init]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
