"""NVIDIA's own device plugin, with a kubelet that is a test's."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hami_mock.views.driver.layout import STATE_FILE
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.judges.driver_root import DriverRoot
from tests.judges.namespace import with_folders

_SOCKETS = "/var/lib/kubelet/device-plugins"


@dataclass(frozen=True)
class RealPlugin:
    process: int
    log: Path

    def is_waiting(self) -> bool:
        """Tell whether a thread of it sleeps in a system call on a word of the state file."""
        proc = Path(f"/proc/{self.process}")
        ranges = [
            range(*(int(end, 16) for end in line.split()[0].split("-")))
            for line in (proc / "maps").read_text().splitlines()
            if line.endswith(f"/{STATE_FILE}")
        ]
        for task in (proc / "task").iterdir():
            # Number and arguments, or "running".
            argument = re.match(r"\d+ (0x[0-9a-f]+)", (task / "syscall").read_text())
            if argument and any(int(argument[1], 16) in each for each in ranges):
                return True
        return False


@contextmanager
def plugin(
    program: Path,
    root: DriverRoot,
    kubelet: GrpcioKubelet,
    *flags: str,
    places: Mapping[str, Path] | None = None,
) -> Iterator[RealPlugin]:
    """Run the plugin. It finds the library by the driver root alone."""
    log = root.folder / "plugin.log"
    command = with_folders(
        {_SOCKETS: kubelet.folder, **(places or {})},
        program,
        f"--driver-root={root.folder}",
        f"--driver-root-ctr-path={root.folder}",
        *flags,
    )
    environment = {**root.environment}
    del environment["LD_LIBRARY_PATH"]
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield RealPlugin(process.pid, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
