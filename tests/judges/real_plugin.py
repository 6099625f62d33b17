"""NVIDIA's own device plugin, with a kubelet that is a test's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.judges.driver_root import DriverRoot
from tests.judges.namespace import with_folders

_SOCKETS = "/var/lib/kubelet/device-plugins"


@contextmanager
def plugin(
    program: Path,
    root: DriverRoot,
    kubelet: GrpcioKubelet,
    *flags: str,
    places: Mapping[str, Path] | None = None,
) -> Iterator[Path]:
    """Run the plugin; yield its log. It finds the library by the driver root alone."""
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
        yield log
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
