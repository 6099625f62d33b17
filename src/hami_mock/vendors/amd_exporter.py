"""AMD's device-metrics-exporter. Its fields are set up in capitals, and served in small letters."""

from hami_mock.vendors.exporter import Exporter, Metric

EXPORTER = Exporter(
    port=5000,
    driver="6.14.14",
    has_empty_labels=True,
    card_labels=(
        ("card_model", "{model}"),
        ("card_series", "{product}"),
        ("card_vendor", "AMD"),
        ("deployment_mode", "baremetal"),
        ("driver_version", "{driver}"),
        ("gpu_compute_partition_type", "spx"),
        ("gpu_id", "{index}"),
        ("gpu_memory_partition_type", "nps1"),
        ("gpu_partition_id", "0"),
        ("gpu_uuid", "{uuid}"),
        ("hostname", "{node}"),
        ("serial_number", "{serial}"),
    ),
    container_labels=(
        ("container", "{container}"),
        ("namespace", "{namespace}"),
        ("pod", "{pod}"),
    ),
    metrics=(
        Metric("gpu_package_power", "power", "Power of the socket (in W).", form="%.1f"),
        Metric("gpu_power_usage", "power", "Power draw (in W).", form="%.1f"),
        Metric("gpu_junction_temperature", "temperature", "Temperature of the hot spot (in C)."),
        Metric("gpu_memory_temperature", "memory_temperature", "Temperature of the memory (in C)."),
        Metric("gpu_gfx_activity", "busy", "Use of the graphics engine (in %)."),
        Metric("gpu_umc_activity", "memory_busy", "Use of the memory engine (in %)."),
        Metric("gpu_energy_consumed", "energy", "Energy used (in uJ).", scale=1000),
        Metric("gpu_total_vram", "memory_total", "Total VRAM (in MB)."),
        Metric("gpu_used_vram", "memory_used", "Used VRAM (in MB)."),
        Metric("gpu_free_vram", "memory_not_used", "Free VRAM (in MB)."),
        Metric("gpu_health", "is_healthy", "1 if the GPU is healthy."),
    ),
)
