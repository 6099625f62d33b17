"""The pods of this node, as far as the API server tells. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pod:
    """What is read of a pod: its annotations, and its containers in the order of its spec.

    `requests` are the devices that containers ask for, by container and resource.
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
