"""The first process of a sandbox: prepares it, reaps orphans, and ends it with everything in it.

It lives as long as its standard input is open. The other end of that pipe is held by the test
process, and the kernel closes it however that process ends (normally, Ctrl-C, SIGKILL): so the
sandbox can't outlive its owner. When the first process of a PID namespace ends, the kernel kills
all others in it, and with the last process go the mount and the network namespace.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from . import cgroups
from .layout import (
    API_SERVICE_IP,
    BRIDGE,
    BRIDGE_ADDRESS,
    CONTAINERD_ROOT,
    KUBELET_ROOT,
    NODE_CIDR,
    STATE,
    STATE_FOLDERS,
)

KILL_TIMEOUT_S = 15.0


def main() -> None:
    (name,) = sys.argv[1:]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _prepare_mounts()
    _prepare_network()
    cgroups.create_and_join(name)
    # From here on orphans (containerd's shims) are ours; before, subprocess needs its own wait.
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: _reap())
    print("ready", flush=True)
    while os.read(sys.stdin.fileno(), 1024):
        pass
    _end(name)


def _prepare_mounts() -> None:
    """Give the cluster its own writable places and make the machine's root read-only to it.

    All of its state is in memory, under a mount that only this namespace has: nothing has to be
    deleted afterwards, and nothing can be forgotten.
    """
    _run("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/run")
    for folder in STATE_FOLDERS:
        folder.mkdir(parents=True)
    STATE.chmod(0o700)
    _run("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/var/log")

    # /var/lib/kubelet may or may not exist on the machine: an overlay over its parent gives a
    # mount point for ours either way, and leaves the machine's own as it is.
    layers = STATE / "var-lib"
    options = f"lowerdir=/var/lib,upperdir={layers}/upper,workdir={layers}/work"
    _run("mount", "-t", "overlay", "-o", options, "overlay", "/var/lib")
    for place in (KUBELET_ROOT, CONTAINERD_ROOT):
        place.mkdir(parents=True, exist_ok=True)
        _run("mount", "--bind", str(STATE / place.name), str(place))

    _run("mount", "-o", "remount,bind,ro", "/")
    # As on a real node: volumes mounted later are seen by containers that ask for it. It is a
    # peer group of this namespace and its children only; the machine's mounts are no part of it.
    _run("mount", "--make-rshared", "/")


def _prepare_network() -> None:
    _run("ip", "link", "set", "lo", "up")
    # No kube-proxy: the API server's service address is simply an address of this "machine", so
    # that pods reach it under the standard environment variables.
    _run("ip", "address", "add", f"{API_SERVICE_IP}/32", "dev", "lo")
    # With an address of its own. Else it takes the lowest of its ports', and each pod that brings a
    # lower one cuts the others off from their gateway, until they notice.
    _run("ip", "link", "add", BRIDGE, "address", BRIDGE_ADDRESS, "type", "bridge")
    _run("ip", "address", "add", NODE_CIDR, "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")


def _run(*argv: str) -> None:
    done = subprocess.run(
        argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: {done.stderr.strip()}")


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _end(name: str) -> None:
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while _others() and time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        _reap()
        time.sleep(0.02)
    cgroups.leave(name)
    cgroups.remove(name)


def _others() -> bool:
    return any(entry.name.isdecimal() and entry.name != "1" for entry in Path("/proc").iterdir())


if __name__ == "__main__":
    main()
