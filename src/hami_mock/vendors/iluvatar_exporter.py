"""Iluvatar's ix-exporter 4.4."""

from hami_mock.vendors.exporter import Exporter, Metric

EXPORTER = Exporter(
    port=32021,
    driver="4.4.0",
    has_empty_labels=True,
    card_labels=(
        ("driver", "{driver}"),
        ("gpu", "{index}"),
        ("ixml", "{driver}"),
        ("name", "{product}"),
        ("node_name", "{node}"),
        ("serial", "{serial}"),
        ("uuid", "{uuid}"),
    ),
    container_labels=(
        ("namespace", "{namespace}"),
        ("pod", "{pod}"),
        ("container", "{container}"),
    ),
    metrics=(
        *(
            Metric(name, "temperature", "Temperature of the GPU (in C).")
            for name in ("ix_temperature", "ix_gpu_temperature")
        ),
        Metric("ix_mem_temperature", "memory_temperature", "Temperature of the memory (in C)."),
        Metric("ix_sm_clock", "sm_clock", "Clock of the SMs (in MHz)."),
        Metric("ix_mem_clock", "memory_clock", "Clock of the memory (in MHz)."),
        Metric("ix_mem_total", "memory_total", "Total memory (in MiB)."),
        Metric("ix_mem_used", "memory_used", "Used memory (in MiB)."),
        Metric("ix_mem_free", "memory_not_used", "Free memory (in MiB)."),
        Metric("ix_mem_utilization", "memory_percent", "Used memory (in %)."),
        Metric("ix_gpu_utilization", "busy", "Utilization of the GPU (in %)."),
        Metric("ix_power_usage", "power", "Power draw (in W)."),
        Metric("ix_xid_errors", "last_xid", "Number of the last Xid."),
        Metric("ix_pcie_tx_throughput", "pcie_sent", "KB sent over PCIe a second.", scale=1e-3),
        Metric(
            "ix_pcie_rx_throughput", "pcie_received", "KB received over PCIe a second.", scale=1e-3
        ),
    ),
)
