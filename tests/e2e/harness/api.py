"""What a test can ask of any cluster, through kubectl."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from .commands import run
from .quantities import extended_resources
from .versions import KubernetesVersion
from .waiting import wait_for

State = TypeVar("State")

KUBECTL_TIMEOUT_S = 60.0


class ClusterApi:
    """A cluster and the one node of it that a test looks at."""

    version: KubernetesVersion
    node_name: str

    def kubectl_argv(self, *words: str | Path) -> list[str]:
        """How a person, or a test that wants the process itself, calls kubectl."""
        raise NotImplementedError

    def client_argv(self, program: Path, *words: str | Path) -> list[str]:
        """How another client of the API server, such as helm, is called."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if the cluster has broken down, so that nobody waits for it in vain."""

    def kubectl(
        self, *words: str | Path, stdin: str | None = None, timeout: float = KUBECTL_TIMEOUT_S
    ) -> str:
        """Run kubectl with the machine's files and the cluster's network; return its output."""
        return run(self.kubectl_argv(*words), stdin_text=stdin, timeout=timeout)

    def get(self, kind: str, name: str | None = None, *, namespace: str = "default") -> Any:
        """One object, or the list of all of `kind` in the namespace, as Kubernetes tells it."""
        names = [] if name is None else [name]
        words = ["get", kind, *names, f"--namespace={namespace}", "--output=json"]
        return json.loads(self.kubectl(*words))

    def apply(self, *objects: Mapping[str, Any]) -> str:
        """Apply objects that the test wrote as dictionaries."""
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self.kubectl("apply", "--filename=-", stdin=json.dumps(document))

    def wait(
        self,
        what: str,
        look: Callable[[], State],
        good: Callable[[State], bool],
        *,
        timeout: float,
        show: Callable[[State], object] | None = None,
    ) -> State:
        """Look until good. Raises NotReachedInTime with the last state."""

        def look_at_living() -> State:
            self.check()
            return look()

        return wait_for(what, look_at_living, good, timeout=timeout, show=show)

    def allocatable(self) -> dict[str, int]:
        """How many units of each extended resource the node can give to pods now."""
        return extended_resources(self.get("node", self.node_name)["status"]["allocatable"])

    def capacity(self) -> dict[str, int]:
        """How many units of each extended resource the node has, healthy or not."""
        return extended_resources(self.get("node", self.node_name)["status"]["capacity"])
