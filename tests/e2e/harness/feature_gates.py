"""The feature gates of Kubernetes that a test can ask for (`Cluster.feature_gates`)."""

from __future__ import annotations

from collections.abc import Mapping

from .versions import KubernetesVersion

# What our DRA driver needs beyond plain claims, and the newest minor that has it off by default.
DRA = {
    "DRAConsumableCapacity": 35,
    "DRADeviceTaints": 35,
    "DRAExtendedResource": 35,
    "DRAPartitionableDevices": 35,
    # Makes devices of plugins expensive too (docs/performance.md): never for all tests.
    "ResourceHealthStatus": 35,
}


def dra_gates(version: KubernetesVersion) -> dict[str, bool]:
    """Those that a release has off by default, turned on."""
    return {name: True for name, last_off in DRA.items() if version.minor <= last_off}


def gate_flags(gates: Mapping[str, bool]) -> list[str]:
    told = ",".join(f"{name}={str(is_on).lower()}" for name, is_on in gates.items())
    return [f"--feature-gates={told}"] if gates else []
