"""HAMi's own scheduler on a control plane, and the kube-scheduler that asks it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hami_mock.fleet.sandbox import Sandbox, free_ports
from tests.e2e.harness import RequirementsMissing, default_device_config, hami_scheduler
from tests.e2e.harness.hami_config import SCHEDULER_NAME, kube_scheduler_config, vendor_flags


@contextmanager
def hami_running(cluster: Sandbox, folder: Path) -> Iterator[str]:
    """Run both, and yield what a pod calls them; skip the test where HAMi's can't be had."""
    try:
        program = hami_scheduler()
    except RequirementsMissing as missing:
        pytest.skip(str(missing))
    config = default_device_config()
    devices, scheduler = folder / "devices.json", folder / "scheduler.json"
    devices.write_text(json.dumps(config))
    extender, metrics = (f"127.0.0.1:{port}" for port in free_ports(2))
    asking = kube_scheduler_config(
        config, extender_url=f"http://{extender}", kubeconfig=cluster.kubeconfig
    )
    scheduler.write_text(json.dumps(asking))
    words: list[str | Path] = [
        program,
        f"--http_bind={extender}",
        f"--metrics-bind-address={metrics}",
        f"--scheduler-name={SCHEDULER_NAME}",
        f"--device-config-file={devices}",
        "--kube-qps=1000",
        "--kube-burst=1000",
        *vendor_flags(config),
    ]
    cluster.start("hami-scheduler", words, {"KUBECONFIG": str(cluster.kubeconfig)})
    asks: list[str | Path] = [
        cluster.programs.kube_scheduler,
        f"--config={scheduler}",
        "--secure-port=0",
    ]
    cluster.start("hami-kube-scheduler", asks)
    yield SCHEDULER_NAME
    cluster.stop("hami-kube-scheduler")
    cluster.stop("hami-scheduler")
