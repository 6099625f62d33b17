"""All judges by name, and how each is had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.judges.debian import nvidia_smi, nvtop, qemu_aarch64
from tests.judges.go_programs import GO_NVML, PLUGIN, TOOLKIT, go_nvml, go_program
from tests.judges.python_clients import client_python
from tests.judges.rust_program import nvml_wrapper

JUDGES: Mapping[str, Callable[[], Path]] = {
    "nvidia-ml-py": client_python,
    "py3nvml": client_python,
    "gpustat": client_python,
    "nvitop": client_python,
    "npustat": client_python,
    "nputop": client_python,
    "nvidia-smi-535": partial(nvidia_smi, 535),
    "nvidia-smi-550": partial(nvidia_smi, 550),
    "nvtop": nvtop,
    "qemu-aarch64": qemu_aarch64,
    "nvml-wrapper": nvml_wrapper,
    GO_NVML: go_nvml,
    "nvidia-ctk": partial(go_program, TOOLKIT, "nvidia-ctk"),
    "nvidia-device-plugin": partial(go_program, PLUGIN, "nvidia-device-plugin"),
    "gpu-feature-discovery": partial(go_program, PLUGIN, "gpu-feature-discovery"),
}
