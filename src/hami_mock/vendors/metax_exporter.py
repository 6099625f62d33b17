"""MetaX's mx-exporter. Memory is in KiB there, and power in mW."""

from hami_mock.vendors.exporter import Exporter, Labels, Metric, Per

_VRAM: Labels = (("type", "vram"),)
_CONTAINER: Labels = (
    ("exported_namespace", "{namespace}"),
    ("exported_pod", "{pod}"),
    ("exported_container", "{container}"),
)

EXPORTER = Exporter(
    port=8000,
    driver="3.0.11",
    has_empty_labels=True,
    card_labels=(
        ("deviceId", "{index}"),
        ("uuid", "{uuid}"),
        ("Hostname", "{node}"),
        ("bios_version", "1.16.0.0"),
        ("driver_version", "{driver}"),
        ("modelName", "{product}"),
    ),
    container_labels=_CONTAINER,
    metrics=(
        Metric("mx_gpu_state", "is_healthy", "1 if the GPU is available."),
        Metric("mx_gpu_usage", "busy", "Utilization of the GPU (in %)."),
        Metric("mx_memory_used", "memory_used", "Used memory (in KiB).", scale=1024, labels=_VRAM),
        Metric(
            "mx_memory_total", "memory_total", "Total memory (in KiB).", scale=1024, labels=_VRAM
        ),
        Metric("mx_memory_usage", "memory_percent", "Used memory (in %).", labels=_VRAM),
        Metric("mx_chip_hotspot_temp", "temperature", "Temperature of the hot spot (in C)."),
        Metric("mx_board_power", "power", "Power draw of the board (in mW).", scale=1000),
        Metric("mx_gpu_clock", "sm_clock", "Clock of the GPU (in MHz)."),
        Metric("mx_mem_clock", "memory_clock", "Clock of the memory (in MHz)."),
        Metric(
            "mx_sgpu_usage",
            "container_busy",
            "Utilization by an sGPU (in %).",
            per=Per.SLICE,
            labels=_CONTAINER,
        ),
        Metric(
            "mx_sgpu_used_memory",
            "container_memory",
            "Memory that an sGPU uses (in KiB).",
            per=Per.SLICE,
            scale=1024,
            labels=_CONTAINER,
        ),
    ),
)
