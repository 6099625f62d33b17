"""dcgm-exporter 4.5.3-4.8.2: its default set. It writes doubles as %f.

The metrics are in the order in which it writes them: that of DCGM's field numbers. It calls
NVLINK_BANDWIDTH_TOTAL a counter, though the value is a speed; so do we.
"""

from dataclasses import replace

from hami_mock.vendors.exporter import Exporter, Metric, Per

_DEV, _PROF = "DCGM_FI_DEV_", "DCGM_FI_PROF_"
_DOUBLE = "%f"

_ON_THE_NODE = (("Hostname", "{node}"), ("DCGM_FI_DRIVER_VERSION", "{driver}"))
_CARD = (
    ("gpu", "{index}"),
    ("UUID", "{uuid}"),
    ("pci_bus_id", "{bus}"),
    ("device", "nvidia{minor}"),
    ("modelName", "{product}"),
)
_METRICS = (
    Metric(f"{_DEV}SM_CLOCK", "sm_clock", "Clock of the SMs (in MHz)."),
    Metric(f"{_DEV}MEM_CLOCK", "memory_clock", "Clock of the memory (in MHz)."),
    Metric(f"{_DEV}MEMORY_TEMP", "memory_temperature", "Temperature of the memory (in C)."),
    Metric(f"{_DEV}GPU_TEMP", "temperature", "Temperature of the GPU (in C)."),
    Metric(f"{_DEV}POWER_USAGE", "power", "Power draw (in W).", form=_DOUBLE),
    Metric(
        f"{_DEV}TOTAL_ENERGY_CONSUMPTION",
        "energy",
        "Energy used since boot (in mJ).",
        "counter",
    ),
    Metric(f"{_DEV}PCIE_REPLAY_COUNTER", "zero", "Number of PCIe retries.", "counter"),
    Metric(f"{_DEV}GPU_UTIL", "busy", "GPU utilization (in %)."),
    Metric(f"{_DEV}MEM_COPY_UTIL", "memory_busy", "Memory utilization (in %)."),
    Metric(f"{_DEV}ENC_UTIL", "zero", "Encoder utilization (in %)."),
    Metric(f"{_DEV}DEC_UTIL", "zero", "Decoder utilization (in %)."),
    Metric(
        f"{_DEV}XID_ERRORS",
        "last_xid",
        "Number of the last Xid.",
        live=(("err_code", "last_xid", "%d"), ("err_msg", "xid_meaning", "%s")),
    ),
    Metric(f"{_DEV}FB_FREE", "memory_free", "Free framebuffer memory (in MiB)."),
    Metric(f"{_DEV}FB_USED", "memory_used", "Used framebuffer memory (in MiB)."),
    Metric(f"{_DEV}FB_RESERVED", "memory_reserved", "Reserved framebuffer memory (in MiB)."),
    # Of the two kinds of damage, a card has the one that its generation knows. The real one has
    # those of pages in its list too, but not among those that are on unless told otherwise.
    Metric(
        f"{_DEV}RETIRED_SBE",
        "retired_correctable",
        "Pages retired for single bit errors.",
        "counter",
    ),
    Metric(
        f"{_DEV}RETIRED_DBE",
        "retired_uncorrectable",
        "Pages retired for double bit errors.",
        "counter",
    ),
    Metric(f"{_DEV}RETIRED_PENDING", "retirement_pending", "1 if pages wait to be retired."),
    Metric(
        f"{_DEV}UNCORRECTABLE_REMAPPED_ROWS",
        "remapped_uncorrectable",
        "Rows remapped for uncorrectable errors.",
        "counter",
    ),
    Metric(
        f"{_DEV}CORRECTABLE_REMAPPED_ROWS",
        "remapped_correctable",
        "Rows remapped for correctable errors.",
        "counter",
    ),
    Metric(f"{_DEV}ROW_REMAP_FAILURE", "remap_failed", "1 if a row could not be remapped."),
    Metric(
        f"{_DEV}NVLINK_BANDWIDTH_TOTAL",
        "nvlink_speed",
        "NVLink traffic of all lanes (in MB/s).",
        "counter",
        # DCGM divides the KiB of a second by 1000.
        scale=1 / 1024 / 1000,
    ),
    Metric(f"{_DEV}VGPU_LICENSE_STATUS", "zero", "Status of the vGPU license."),
    Metric(
        f"{_PROF}GR_ENGINE_ACTIVE",
        "busy_exactly",
        "Part of the time that the graphics engine is active.",
        scale=0.01,
        form=_DOUBLE,
    ),
    Metric(
        f"{_PROF}PIPE_TENSOR_ACTIVE",
        "tensor",
        "Part of the cycles that the tensor pipe is active.",
        form=_DOUBLE,
    ),
    Metric(
        f"{_PROF}DRAM_ACTIVE",
        "dram",
        "Part of the cycles that the memory sends or receives.",
        form=_DOUBLE,
    ),
    Metric(f"{_PROF}PCIE_TX_BYTES", "pcie_sent", "Bytes sent over PCIe a second."),
    Metric(f"{_PROF}PCIE_RX_BYTES", "pcie_received", "Bytes received over PCIe a second."),
)
# Nobody counts these for an instance.
_OF_WHOLE_CARDS = frozenset(
    {f"{_DEV}{name}_UTIL" for name in ("GPU", "MEM_COPY", "ENC", "DEC")}
    | {f"{_DEV}NVLINK_BANDWIDTH_TOTAL", f"{_PROF}PCIE_TX_BYTES", f"{_PROF}PCIE_RX_BYTES"}
)


def _with_instances(metric: Metric) -> tuple[Metric, ...]:
    if metric.name in _OF_WHOLE_CARDS:
        return (metric,)
    return metric, replace(metric, per=Per.INSTANCE)


EXPORTER = Exporter(
    port=9400,
    option="dcgm-listen",
    monitored_as="NVIDIA-{product}",
    card_labels=(*_CARD, *_ON_THE_NODE),
    instance_labels=(
        *_CARD,
        ("GPU_I_PROFILE", "{profile}"),
        ("GPU_I_ID", "{gpu_instance}"),
        *_ON_THE_NODE,
    ),
    container_labels=(
        ("container", "{container}"),
        ("namespace", "{namespace}"),
        ("pod", "{pod}"),
    ),
    metrics=tuple(each for metric in _METRICS for each in _with_instances(metric)),
)
