"""What NVIDIA's driver leaves on a machine: libraries, what /proc and /sys show, device nodes."""

from collections.abc import Iterator, Sequence

from hami_mock.vendors import nvidia_nvml
from hami_mock.vendors.driver import DeviceNode, Driver, DriverCard, Machine, Mount
from hami_mock.vendors.nvidia_boards import board
from hami_mock.vendors.nvidia_nvml import CLOCK_REASONS, POLICIES, RECOVERY, RESET

_MAJOR, _CONTROL, _MODESET = 195, 255, 254
_UVM_MAJOR = 511
"""The kernel gives it out; this is the first of those that it takes."""
_GPU_INSTANCES, _COMPUTE_INSTANCES = 15, 8
"""How many IDs the driver has for them on each card, whether it can be cut or not."""
_LIBRARY = "libnvidia-ml.so.{version}"
_PLACEHOLDERS = (
    "libcuda.so", "libcudadebugger.so", "libnvidia-cfg.so", "libnvidia-encode.so", "libnvcuvid.so",
    "libnvidia-ptxjitcompiler.so", "libnvidia-nvvm.so", "libnvidia-opencl.so", "libnvoptix.so",
    "libnvidia-fbc.so", "libnvidia-opticalflow.so",
)  # fmt: skip
_PARAMETERS = {
    "ResmanDebugLevel": 4294967295,
    "ModifyDeviceFiles": 1,
    "DeviceFileUID": 0,
    "DeviceFileGID": 0,
    "DeviceFileMode": 438,
    "EnableMSI": 1,
    "EnableResizableBar": 0,
    "DynamicPowerManagement": 3,
    "RegistryDwords": '""',
}


def _files(machine: Machine) -> dict[str, str]:
    version = machine.version
    return {
        "proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX Kernel Module  {version}\n",
        "proc/driver/nvidia/params": _lines(_PARAMETERS),
        "sys/module/nvidia/version": f"{version}\n",
        "sys/module/nvidia/initstate": "live\n",
        "proc/driver/nvidia-caps/mig-minors": _capabilities(machine.cards),
    } | {
        f"proc/driver/nvidia/gpus/{_address(card)}/information": _information(card, version)
        for card in machine.cards
    }


def _capabilities(cards: Sequence[DriverCard]) -> str:
    """Return which node of nvidia-caps gives access to which instance, of all that can be."""
    names = ["config", "monitor"]
    for card in cards:
        for instance in range(_GPU_INSTANCES):
            place = f"gpu{card.minor}/gi{instance}"
            parts = (f"{place}/ci{compute}/access" for compute in range(_COMPUTE_INSTANCES))
            names += [f"{place}/access", *parts]
    return "".join(f"{name} {minor}\n" for minor, name in enumerate(names, start=1))


def _address(card: DriverCard) -> str:
    """Return where a card is plugged in, as Linux writes it."""
    return card.pci_bus_id[4:].lower()


def _information(card: DriverCard, version: str) -> str:
    return _lines(
        {
            "Model": card.model.product,
            "IRQ": nvidia_nvml.irq(card),
            "GPU UUID": card.uuid,
            "Video BIOS": board(card.model).vbios,
            "Bus Type": "PCIe",
            "DMA Size": "47 bits",
            "DMA Mask": "0x7fffffffffff",
            "Bus Location": _address(card),
            "Device Minor": card.minor,
            "GPU Firmware": version,
            "GPU Excluded": "No",
        }
    )


def _lines(values: dict[str, object]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in values.items())


def _nodes(cards: Sequence[DriverCard]) -> Iterator[DeviceNode]:
    for card in cards:
        yield DeviceNode(f"nvidia{card.minor}", _MAJOR, card.minor, card.uuid)
    yield DeviceNode("nvidiactl", _MAJOR, _CONTROL)
    yield DeviceNode("nvidia-modeset", _MAJOR, _MODESET)
    yield DeviceNode("nvidia-uvm", _UVM_MAJOR, 0)
    yield DeviceNode("nvidia-uvm-tools", _UVM_MAJOR, 1)


DRIVER = Driver(
    about=nvidia_nvml.about,
    identify=nvidia_nvml.identify,
    standing=nvidia_nvml.standing,
    clock_reasons=CLOCK_REASONS,
    policies=POLICIES,
    event_types=nvidia_nvml.event_types,
    compute_profile=nvidia_nvml.compute_profile,
    compute_slices=nvidia_nvml.compute_slices,
    recovery=RECOVERY,
    failed=RESET,
    library=_LIBRARY,
    placeholders=tuple(f"{name}.{{version}}" for name in _PLACEHOLDERS),
    program="nvidia-smi",
    files=_files,
    nodes=_nodes,
    mounts=(
        # Where loaders look by themselves: Debian's and musl's, and Red Hat's. The link is there
        # whatever the version: a container that starts again after a change gets the same mounts.
        Mount("lib64/libnvidia-ml.so.1", "/usr/lib/libnvidia-ml.so.1"),
        Mount("lib64/libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.1"),
        Mount("bin/nvidia-smi", "/usr/bin/nvidia-smi"),
    ),
    cdi_kind="nvidia.com/gpu",
)
