"""Kubernetes' feature gates that a DRA driver lives by, and where each is on. Pure."""

from typing import NamedTuple

from hami_mock.kubelet.limits import Version

CONSUMABLE = "DRAConsumableCapacity"
PARTITIONABLE = "DRAPartitionableDevices"
TAINTS = "DRADeviceTaints"
HEALTH = "ResourceHealthStatus"
EXTENDED = "DRAExtendedResource"
DROPPED = (CONSUMABLE, PARTITIONABLE, TAINTS)
"""Those without which the API server drops fields of a ResourceSlice."""

OFF, ON, GA = "off", "on", "GA"
VERSIONS: tuple[Version, ...] = ((1, 35), (1, 36), (1, 37))
COMPONENTS = ("the API server", "the controller manager", "the scheduler", "the kubelet")
"""Where a gate must be set."""


class Gate(NamedTuple):
    """A gate: what it is for, how each of VERSIONS has it by default, and what is lost without."""

    use: str
    defaults: tuple[str, ...]
    without: str

    def default(self, version: Version) -> str:
        """Return what a release has by default; one that isn't known is like the nearest."""
        known = min(max(version, VERSIONS[0]), VERSIONS[-1])
        return self.defaults[VERSIONS.index(known)]


GATES = {
    "DynamicResourceAllocation": Gate("DRA itself", (GA, GA, GA), "there is no DRA"),
    CONSUMABLE: Gate(
        "parts of a card: memory, cores",
        (OFF, ON, ON),
        "claims get whole cards, not parts of them",
    ),
    PARTITIONABLE: Gate(
        "MIG instances with counters", (OFF, ON, ON), "cards aren't offered in parts"
    ),
    TAINTS: Gate(
        "health as taints", (OFF, ON, GA), "cards that are unhealthy aren't offered at all"
    ),
    HEALTH: Gate("health in the pod's status", (OFF, ON, ON), "pods don't tell of their cards"),
    EXTENDED: Gate(
        "pods that ask for nvidia.com/gpu get a card by DRA",
        (OFF, ON, GA),
        "a pod needs a claim to get a card",
    ),
}


def components() -> str:
    return f"{', '.join(COMPONENTS[:-1])} and {COMPONENTS[-1]}"
