"""Ascend's npu-exporter (MindCluster)."""

from hami_mock.vendors.exporter import Exporter, Metric

EXPORTER = Exporter(
    port=8082,
    has_empty_labels=True,
    card_labels=(
        ("id", "{index}"),
        ("model_name", "{product}"),
        ("vdie_id", "{uuid}"),
        ("pcie_bus_info", "{bus}"),
        # Not npu-exporter's own: its ServiceMonitor adds it, and HAMi-WebUI asks for it.
        ("node", "{node}"),
    ),
    container_labels=(
        ("namespace", "{namespace}"),
        ("pod_name", "{pod}"),
        ("container_name", "{container}"),
    ),
    metrics=(
        Metric("npu_chip_info_utilization", "busy", "Utilization of the AI cores (in %)."),
        Metric("npu_chip_info_overall_utilization", "busy", "Utilization of the NPU (in %)."),
        Metric("npu_chip_info_temperature", "temperature", "Temperature of the NPU (in C)."),
        Metric("npu_chip_info_power", "power", "Power draw (in W).", form="%.1f"),
        Metric("npu_chip_info_aicore_current_freq", "sm_clock", "Clock of the AI cores (in MHz)."),
        Metric("npu_chip_info_health_status", "is_healthy", "1 if the NPU is healthy."),
        Metric("npu_chip_info_hbm_used_memory", "memory_used", "Used HBM (in MB)."),
        Metric("npu_chip_info_hbm_total_memory", "memory_total", "Total HBM (in MB)."),
        Metric("npu_chip_info_hbm_utilization", "memory_percent", "Used HBM (in %)."),
        Metric(
            "npu_chip_info_hbm_temperature", "memory_temperature", "Temperature of the HBM (in C)."
        ),
    ),
)
