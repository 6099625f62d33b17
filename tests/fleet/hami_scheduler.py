"""HAMi's scheduler, and the kube-scheduler that asks it, in a sandbox."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hami_mock.fleet.sandbox import Sandbox, free_ports
from tests.e2e.harness import RequirementsMissing, default_device_config, hami_scheduler
from tests.e2e.harness.hami_config import SCHEDULER_NAME, kube_scheduler_config, vendor_flags


@contextmanager
def running_hami(
    running: Sandbox, folder: Path, *, qps: int = 1000, percentage: int = 100
) -> Iterator[str]:
    """Run both for the time of the block; yields what a pod calls them.

    `qps` is how many requests a second HAMi's scheduler may make, `percentage` how many of many
    nodes kube-scheduler looks at (0: its default). Raises RequirementsMissing without the program.
    """
    program = hami_scheduler()
    config = default_device_config()
    devices, scheduler = folder / "devices.json", folder / "scheduler.json"
    devices.write_text(json.dumps(config))
    extender, metrics = (f"127.0.0.1:{port}" for port in free_ports(2))
    asking = kube_scheduler_config(
        config, extender_url=f"http://{extender}", kubeconfig=running.kubeconfig
    )
    # If it gave up before HAMi has looked at all nodes, both would decide on a pod twice.
    asking["extenders"][0]["httpTimeout"] = "900s"
    scheduler.write_text(json.dumps({**asking, "percentageOfNodesToScore": percentage}))
    words: list[str | Path] = [
        program,
        f"--http_bind={extender}",
        f"--metrics-bind-address={metrics}",
        f"--scheduler-name={SCHEDULER_NAME}",
        f"--device-config-file={devices}",
        f"--kube-qps={qps}",
        f"--kube-burst={qps}",
        *vendor_flags(config),
    ]
    running.start("hami-scheduler", words, {"KUBECONFIG": str(running.kubeconfig)})
    asks: list[str | Path] = [
        running.programs.kube_scheduler,
        f"--config={scheduler}",
        "--secure-port=0",
    ]
    running.start("hami-kube-scheduler", asks)
    try:
        yield SCHEDULER_NAME
    finally:
        running.stop("hami-kube-scheduler")
        running.stop("hami-scheduler")


@contextmanager
def hami_or_skip(running: Sandbox, folder: Path) -> Iterator[str]:
    """Run both for a test, which is skipped where HAMi's can't be had."""
    try:
        hami_scheduler()
    except RequirementsMissing as missing:
        pytest.skip(str(missing))
    with running_hami(running, folder) as name:
        yield name
