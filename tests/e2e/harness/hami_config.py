"""The settings of HAMi's scheduler and of the kube-scheduler that asks it: data from data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

DEFAULT_DEVICE_CONFIG = Path(__file__).parent.parent / "hami-device-config.yaml"
SCHEDULER_NAME = "hami-scheduler"
# HAMi answers a first filter only after its first look at the nodes, which can be 15 s away.
EXTENDER_TIMEOUT = "30s"


def default_device_config() -> dict[str, Any]:
    """A fresh copy of the device config for all vendors, which a test may change."""
    loaded: dict[str, Any] = yaml.safe_load(DEFAULT_DEVICE_CONFIG.read_text())
    return loaded


def managed_resources(device_config: Mapping[str, Any]) -> list[str]:
    """The names of all resources in it: in every vendor's section their keys begin alike."""
    return sorted(set(_resource_names(device_config)))


def _resource_names(part: object) -> Iterator[str]:
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key.startswith("resource"):
                yield value
            else:
                yield from _resource_names(value)
    elif isinstance(part, list):
        for item in part:
            yield from _resource_names(item)


def vendor_flags(device_config: Mapping[str, Any]) -> list[str]:
    """These two vendors' sections are read only where a flag says so."""
    sections = {"vnpus": "--enable-ascend", "iluvatars": "--enable-iluvatar"}
    return [flag for section, flag in sections.items() if section in device_config]


def kube_scheduler_config(
    device_config: Mapping[str, Any], *, extender_url: str, kubeconfig: Path
) -> dict[str, Any]:
    """A kube-scheduler for pods of SCHEDULER_NAME only, which leaves their devices to HAMi."""
    extender = {
        "urlPrefix": extender_url,
        "filterVerb": "filter",
        "bindVerb": "bind",
        "weight": 1,
        # It then sends the nodes' names; sent whole nodes, HAMi only simulates.
        "nodeCacheCapable": True,
        "httpTimeout": EXTENDER_TIMEOUT,
        "managedResources": [
            {"name": name, "ignoredByScheduler": True} for name in managed_resources(device_config)
        ],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": SCHEDULER_NAME}],
        "extenders": [extender],
    }
