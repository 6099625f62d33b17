"""The pods of this node, as far as the API server tells. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pod:
    """What is read of a pod: its annotations, and its containers in the order of its spec.

    - requests: the devices that containers ask for, by container and resource
    - sidecars: the init containers that run for as long as the others do
    - phase: "Pending" and so on; "": not said
    - has_begun: all init containers that end have ended
    """

    namespace: str
    name: str
    uid: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    init_containers: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    started: float = 0.0
    """Seconds since 1970; 0: not yet."""
    requests: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    sidecars: frozenset[str] = frozenset()
    phase: str = ""
    has_begun: bool = False

    @property
    def is_over(self) -> bool:
        """Whether none of its containers will ever run (again)."""
        return self.phase in ("Failed", "Succeeded")

    @property
    def is_admitted(self) -> bool:
        """Whether the kubelet has taken it, as far as is told."""
        return self.started > 0 or self.phase == "Running"

    def passes_on(self, container: str) -> bool:
        """Tell whether the kubelet gives a container's devices to others when it has ended."""
        return container in self.init_containers and container not in self.sidecars

    def asks_for(self, resource: str) -> int:
        """Return how much of a resource the kubelet and the scheduler count for it.

        Containers run at the same time; before them init containers do, one after the other, but
        for sidecars, which stay.
        """
        own = {name: asked.get(resource, 0) for name, asked in self.requests.items()}
        most = staying = 0
        for name in self.init_containers:
            most = max(most, staying + own.get(name, 0))
            staying += own.get(name, 0) if name in self.sidecars else 0
        return max(most, staying + sum(own.get(name, 0) for name in self.containers))
