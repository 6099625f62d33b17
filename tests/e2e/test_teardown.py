"""However a cluster ends, nothing of it stays on the machine."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import EXISTING, skip_or_fail
from .harness import (
    WORKLOAD,
    Cluster,
    KubernetesVersion,
    Progress,
    RequirementsMissing,
    cgroups,
)
from .harness.commands import run
from .harness.leftovers import Traces
from .harness.own_modules import module_command, module_environment
from .harness.requirements import ensure_requirements
from .harness.sandbox import Sandbox
from .harness.waiting import wait_for

GONE_TIMEOUT_S = 60.0


@pytest.fixture(scope="module", autouse=True)
def _requirements(any_version: KubernetesVersion) -> None:
    if EXISTING:
        pytest.skip("this makes clusters of our own, and $E2E_KUBECONFIG names another")
    try:
        ensure_requirements(any_version, Progress())
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


@contextmanager
def in_the_background() -> Iterator[None]:
    """Start something as `&` in a script, nohup and some CI runners start us: deaf to Ctrl-C.

    A process inherits which signals are ignored, and Python then leaves them so.
    """
    deaf_to = (signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in deaf_to]
    try:
        yield
    finally:
        for number, handler in zip(deaf_to, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def owner_of_a_cluster(version: KubernetesVersion) -> Iterator[subprocess.Popen[str]]:
    with in_the_background():
        owner = subprocess.Popen(
            [*module_command("__main__"), "up", f"--kubernetes={version}"],
            env=module_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a process group of its own, as a shell gives to a job
        )
    with owner:
        try:
            yield owner
        finally:
            owner.kill()  # one that didn't end must not be waited for


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_owner_is_ended(
    how: signal.Signals, any_version: KubernetesVersion
) -> None:
    before = Traces.now()
    with owner_of_a_cluster(any_version) as owner:
        assert owner.stdout is not None
        # The first line comes when the cluster is up, or the end of the stream when it failed.
        assert "is up" in owner.stdout.readline(), owner.communicate()[1]
        (alias,) = shlex.split(owner.stdout.readline().strip().removeprefix("alias k="))
        run_a_pod(shlex.split(alias))
        assert Traces.now().new_since(before)
        os.killpg(owner.pid, how)
        owner.communicate(timeout=GONE_TIMEOUT_S)
    assert_nothing_new(before)


def test_nothing_is_left_after_a_failed_test(any_version: KubernetesVersion) -> None:
    def fail() -> None:
        with Cluster.start(any_version, Progress()) as cluster:
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


def test_what_runs_in_a_cluster_hears_the_signals_that_we_ignore(tmp_path: Path) -> None:
    sandbox = Sandbox.start()
    try:
        with in_the_background():
            _, pid = sandbox.spawn(["sleep", "infinity"], env={}, log=tmp_path / "log")
        wait_for(
            "no signal ignored",
            lambda: _ignored_signals(pid),
            lambda mask: mask == 0,
            timeout=GONE_TIMEOUT_S,
        )
    finally:
        sandbox.close()


def _ignored_signals(pid: int) -> int:
    """Of the signals 1 to 31: beyond are those that the C library keeps for itself."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (mask,) = (line.split()[1] for line in lines if line.startswith("SigIgn:"))
    return int(mask, 16) & 0x7FFFFFFF
