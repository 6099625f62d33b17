"""A cluster that was there before us and stays: whoever has one may prove the agent on it."""

from __future__ import annotations

import json
from pathlib import Path

from .api import ClusterApi
from .errors import HarnessError
from .versions import parse_version


class ExistingCluster(ClusterApi):
    """Reached by a kubeconfig. Its daemons aren't ours to kill, nor its images ours to load."""

    def __init__(self, kubeconfig: str, node_name: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        told = json.loads(self.kubectl("version", "--output=json"))["serverVersion"]["gitVersion"]
        self.version = parse_version(told.partition("-")[0].partition("+")[0])
        self.node_name = node_name or self._only_node()

    def kubectl_argv(self, *words: str | Path) -> list[str]:
        return ["kubectl", f"--kubeconfig={self._kubeconfig}", *map(str, words)]

    def client_argv(self, program: Path, *words: str | Path) -> list[str]:
        return [str(program), f"--kubeconfig={self._kubeconfig}", *map(str, words)]

    def _only_node(self) -> str:
        nodes = [item["metadata"]["name"] for item in self.get("nodes")["items"]]
        if len(nodes) != 1:
            raise HarnessError(
                f"say which node to look at with E2E_NODE, one of {', '.join(nodes)}"
            )
        return str(nodes[0])
