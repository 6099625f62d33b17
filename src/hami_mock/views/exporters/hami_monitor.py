"""The metrics of HAMi's monitor (vGPUmonitor of HAMi 2.10): per card, and per container and card.

Its ratios are percent. The memory of a container is what it uses: HAMi's library, which counts it
on a real node, isn't needed here, so a container has its rows as soon as it holds a card.
"""

import time
from collections.abc import Callable, Mapping

from hami_mock import __version__
from hami_mock.kit.exposition_text import head_text
from hami_mock.kubelet.holder import Container
from hami_mock.node.holders import Load
from hami_mock.vendors.exporter import MIB, Exporter, Labels, Metric, Per

_ZONE = ("zone", "vGPU")
_DEVICE: Labels = (
    ("device_index", "{index}"),
    ("device_uuid", "{uuid}"),
    ("device_type", "{monitored_as}"),
    _ZONE,
)
_CONTAINER: Labels = (
    ("namespace", "{namespace}"),
    ("pod", "{pod}"),
    ("container", "{container}"),
    ("vdevice_index", "{number}"),
    ("device_uuid", "{uuid}"),
    _ZONE,
)
_NODE = (("node", "{node}"), *_DEVICE)
_OLD_DEVICE: Labels = (
    ("nodeid", "{node}"),
    ("deviceidx", "{index}"),
    ("deviceuuid", "{uuid}"),
    ("devicetype", "{monitored_as}"),
    _ZONE,
)
_OLD_CONTAINER: Labels = (
    ("podnamespace", "{namespace}"),
    ("podname", "{pod}"),
    ("ctrname", "{container}"),
    ("vdeviceid", "{number}"),
    ("deviceuuid", "{uuid}"),
    _ZONE,
)


def _device(name: str, reads: str, text: str, scale: int = 1, labels: Labels = _NODE) -> Metric:
    return Metric(name, reads, text, scale=scale, labels=labels)


def _container(
    name: str, reads: str, text: str, scale: int = 1, labels: Labels = _CONTAINER
) -> Metric:
    return Metric(name, f"container_{reads}", text, per=Per.CONTAINER, scale=scale, labels=labels)


# fmt: off
METRICS = (
    _device("hami_host_gpu_memory_used_bytes", "memory_used", "Used memory of the card.", MIB),
    _device("hami_host_gpu_utilization_ratio", "busy", "Utilization of the card (0-100)."),
    _device("hami_host_gpu_memory_controller_utilization_ratio", "memory_busy",
            "Utilization of the card's memory controller (0-100).", labels=_DEVICE),
    _container("hami_vgpu_memory_used_bytes", "memory", "Memory that the container uses.", MIB),
    _container("hami_vgpu_memory_limit_bytes", "memory_limit",
               "Memory that the container may use.", MIB),
    _container("hami_container_device_memory_bytes", "memory",
               "Memory that the container uses.", MIB),
    _container("hami_container_device_utilization_ratio", "busy",
               "Utilization of the card by the container (0-100)."),
    _container("hami_vgpu_memory_context_bytes", "context",
               "Memory of the container's context.", MIB),
    _container("hami_vgpu_memory_module_bytes", "module", "Memory of the container's code.", MIB),
    _container("hami_vgpu_memory_buffer_bytes", "buffer", "Memory of the container's data.", MIB),
    _container("hami_container_last_kernel_elapsed_seconds", "idle",
               "Seconds since the container last worked on the card."),
    Metric("hami_mig_device_info", "one", "An instance of a card, and which container has it.",
           per=Per.INSTANCE,
           labels=(*_CONTAINER, ("mig_uuid", "{mig_uuid}"), ("profile", "{profile}"),
                   ("gpu_instance_id", "{gpu_instance}"),
                   ("compute_instance_id", "{compute_instance}"))),
)
LEGACY = (
    _device("HostGPUMemoryUsage", "memory_used", "Used memory of the card.", MIB, _OLD_DEVICE),
    _device("HostCoreUtilization", "busy", "Utilization of the card.", labels=_OLD_DEVICE),
    _container("vGPU_device_memory_usage_in_bytes", "memory",
               "Memory that the container uses.", MIB, _OLD_CONTAINER),
    _container("vGPU_device_memory_limit_in_bytes", "memory_limit",
               "Memory that the container may use.", MIB, _OLD_CONTAINER),
    Metric("Device_memory_desc_of_container", "container_memory_bytes",
           "Memory that the container uses, and for what.", per=Per.CONTAINER,
           labels=_OLD_CONTAINER,
           live=(("context", "container_context_bytes", "%d"),
                 ("module", "container_module_bytes", "%d"),
                 ("data", "container_buffer_bytes", "%d"),
                 ("offset", "zero", "%d"))),
    _container("Device_utilization_desc_of_container", "busy",
               "Utilization of the card by the container.", labels=_OLD_CONTAINER),
    _container("Device_last_kernel_of_container", "idle",
               "Seconds since the container last worked on the card.", labels=_OLD_CONTAINER),
    Metric("MigInfo", "one", "An instance of a card, and which container has it.", per=Per.INSTANCE,
           labels=(*_OLD_CONTAINER, ("instanceid", "{gpu_instance}"))),
)
# fmt: on


def monitor(*, has_legacy: bool) -> Exporter:
    """Return HAMi's monitor as an exporter."""
    metrics = (*METRICS, *LEGACY) if has_legacy else METRICS
    return Exporter(metrics, (), (), port=9394, option="hami-monitor-listen")


BUILD = "hami_build_info"
BUILD_INFO = (
    head_text(BUILD, "Always 1; what is shown here as HAMi.", "gauge")
    + f'{BUILD}{{version="v2.10.0",revision="hami-mock-{__version__}",build_date="unknown",'
    'go_version="none",compiler="none",platform="linux/amd64"} 1\n'
)


class LastWork:
    """Knows when each container has last worked on each card."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._worked: dict[tuple[str, Container], float] = {}

    def note(self, loads: Mapping[tuple[str, Container], Load]) -> None:
        """Take what containers do now; who is gone is forgotten."""
        now, before = self._clock(), self._worked
        self._worked = {
            key: now if load.busy else before[key]
            for key, load in loads.items()
            if load.busy or key in before
        }

    def idle(self) -> dict[tuple[str, Container], float]:
        """Return for how many seconds each has done nothing."""
        now = self._clock()
        return {key: now - worked for key, worked in self._worked.items()}
