"""HAMi's scheduler, and the kube-scheduler that asks it, beside a control plane."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.fleet.sandbox import Sandbox, free_ports
from hami_mock.fleet.sandbox.child import Child
from hami_mock.fleet.sandbox.flags import REQUESTS_PER_SECOND
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.whatif.rules import Rules

NAME = "hami-scheduler"
"""What pods call it."""
_PATIENCE = "300s"
"""So long kube-scheduler waits for HAMi, which answers after its first look at all nodes."""


def start(
    running: Sandbox, program: Path, rules: Rules, vendors: Sequence[HamiVendor]
) -> tuple[Child, Child]:
    """Start both; the nodes must be there."""
    address, metrics = (f"127.0.0.1:{port}" for port in free_ports(2))
    devices, config = running.folder / "hami-devices.json", running.folder / "hami-asker.json"
    devices.write_text(json.dumps(device_config(vendors)))
    config.write_text(json.dumps(_asker(running.kubeconfig, address, vendors)))
    words: list[str | Path] = [
        program,
        f"--http_bind={address}",
        f"--metrics-bind-address={metrics}",
        f"--scheduler-name={NAME}",
        f"--device-config-file={devices}",
        f"--node-scheduler-policy={rules.nodes}",
        f"--gpu-scheduler-policy={rules.cards}",
        f"--kube-qps={REQUESTS_PER_SECOND}",
        f"--kube-burst={REQUESTS_PER_SECOND}",
    ]
    asker: list[str | Path] = [
        running.programs.kube_scheduler,
        f"--config={config}",
        "--secure-port=0",
    ]
    return (
        running.start(NAME, words, {"KUBECONFIG": str(running.kubeconfig)}),
        running.start("hami-kube-scheduler", asker),
    )


def device_config(vendors: Sequence[HamiVendor]) -> dict[str, Any]:
    """Return HAMi's device configuration with what the vendors' resources are called here.

    Raises UsageError for vendors of which it has a section for each chip.
    """
    found: dict[str, Any] = {}
    for vendor in vendors:
        section = vendor.vendor.config
        if section.chips:
            raise UsageError(
                f"--hami-scheduler: HAMi's scheduler can't be asked about cards of "
                f"{vendor.vendor.title} here: leave them out of the fleet"
            )
        own = found.setdefault(section.name, {})
        for offer in vendor.vendor.offers:
            if name := vendor.resources.of(offer.role):
                own[offer.config_key] = name
        if section.factor:
            own[section.factor] = vendor.resources.memory_unit
        if count := vendor.scheduling.asking.default_count:
            own["defaultGPUNum"] = count
    return found


def _asker(kubeconfig: Path, address: str, vendors: Sequence[HamiVendor]) -> dict[str, Any]:
    """Return the configuration of a kube-scheduler that leaves cards to HAMi."""
    names = [vendor.resources for vendor in vendors]
    every = {name for each in names for name in (each.count, each.memory, each.cores)}
    every |= {each.percentage for each in names}
    extender = {
        "urlPrefix": f"http://{address}",
        "filterVerb": "filter",
        "bindVerb": "bind",
        "weight": 1,
        # HAMi wants the nodes' names, and not all that there is of them.
        "nodeCacheCapable": True,
        "httpTimeout": _PATIENCE,
        "managedResources": [
            {"name": name, "ignoredByScheduler": True} for name in sorted(filter(None, every))
        ],
    }
    # Nobody gives way to the more important ones here.
    plugins = {"postFilter": {"disabled": [{"name": "*"}]}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(kubeconfig),
            "qps": REQUESTS_PER_SECOND,
            "burst": REQUESTS_PER_SECOND,
        },
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": NAME, "plugins": plugins}],
        "extenders": [extender],
    }
