"""However a cluster ends, nothing of it stays on the machine."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time

import pytest

from .conftest import skip_or_fail
from .harness import DEFAULT, WORKLOAD, Cluster, Progress, RequirementsMissing, cgroups
from .harness.commands import run
from .harness.leftovers import Traces
from .harness.own_modules import module_command, module_environment
from .harness.requirements import ensure_requirements
from .harness.sandbox import Sandbox
from .harness.waiting import wait_for

START_TIMEOUT_S = 180.0
GONE_TIMEOUT_S = 60.0


@pytest.fixture(scope="module", autouse=True)
def _requirements() -> None:
    try:
        ensure_requirements(DEFAULT, Progress())
    except RequirementsMissing as missing:
        skip_or_fail(missing)


def run_a_pod(kubectl: list[str]) -> None:
    run([*kubectl, "run", "workload", f"--image={WORKLOAD}"])
    run([*kubectl, "wait", "--for=condition=Ready", "pod/workload", "--timeout=60s"])


def assert_nothing_new(before: Traces) -> None:
    wait_for(
        "nothing left behind",
        lambda: Traces.now().new_since(before),
        lambda lines: not lines,
        timeout=GONE_TIMEOUT_S,
        show="\n".join,
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_owner_is_ended(how: signal.Signals) -> None:
    before = Traces.now()
    with subprocess.Popen(
        [*module_command("__main__"), "up"],
        env=module_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a process group of its own, as a shell gives to a job
    ) as owner:
        assert owner.stdout is not None
        # The first line comes when the cluster is up, or the end of the stream when it failed.
        assert "is up" in owner.stdout.readline(), owner.communicate()[1]
        (alias,) = shlex.split(owner.stdout.readline().strip().removeprefix("alias k="))
        run_a_pod(shlex.split(alias))
        assert Traces.now().new_since(before)
        os.killpg(owner.pid, how)
        owner.communicate(timeout=START_TIMEOUT_S)
    assert_nothing_new(before)


def test_nothing_is_left_after_a_failed_test() -> None:
    def fail() -> None:
        with Cluster.start(DEFAULT, Progress()) as cluster:
            run_a_pod(cluster.kubectl_argv())
            raise ZeroDivisionError

    before = Traces.now()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert_nothing_new(before)


def test_what_only_the_first_process_could_remove_is_removed_by_the_next_run() -> None:
    """When even the sandbox's own first process is killed, its control groups stay until then."""
    before = Traces.now()
    sandbox = Sandbox.start()
    os.kill(sandbox.init_pid, signal.SIGKILL)
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while cgroups.remove_abandoned() != [sandbox.name]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    sandbox.close()
    assert_nothing_new(before)
