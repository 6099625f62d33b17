"""Hygon's dcu-exporter, and the names that HAMi-WebUI asks for vDCUs."""

from hami_mock.vendors.exporter import MIB, Exporter, Metric, Per

_VDCU = (
    ("dcu_pod_namespace", "{namespace}"),
    ("dcu_pod_name", "{pod}"),
    ("container", "{container}"),
    # dcu-exporter has the three above, HAMi-WebUI asks with the two below.
    ("pod_uuid", "{pod_uid}"),
    ("container_name", "{container}"),
)

EXPORTER = Exporter(
    port=16080,
    has_empty_labels=True,
    card_labels=(
        ("device_id", "{uuid}"),
        ("minor_number", "{minor}"),
        ("name", "{product}"),
        ("node", "{node}"),
        ("pcieBus_number", "{bus}"),
    ),
    container_labels=(
        ("dcu_pod_namespace", "{namespace}"),
        ("dcu_pod_name", "{pod}"),
        ("container", "{container}"),
    ),
    metrics=(
        Metric("dcu_temp", "temperature", "Temperature of the DCU (in C)."),
        Metric("dcu_power_usage", "power", "Power draw (in W).", form="%.1f"),
        Metric("dcu_powercap", "power_limit", "Power limit (in W)."),
        Metric("dcu_sclk", "sm_clock", "Clock of the compute units (in MHz)."),
        Metric("dcu_utilizationrate", "busy", "Utilization of the DCU (in %)."),
        Metric("dcu_usedmemory_bytes", "memory_used", "Used memory (in bytes).", scale=MIB),
        Metric("dcu_memorycap_bytes", "memory_total", "Total memory (in bytes).", scale=MIB),
        *(
            Metric(
                name, "container_busy", "Utilization by a vDCU (in %).", per=Per.SLICE, labels=_VDCU
            )
            for name in ("vdcu_percent", "vdcu_utilizationrate")
        ),
        *(
            Metric(
                name,
                "container_memory",
                "Memory that a vDCU uses (in bytes).",
                per=Per.SLICE,
                scale=MIB,
                labels=_VDCU,
            )
            for name in ("vdcu_usage_memory_size", "vdcu_usedmemory_bytes")
        ),
    ),
)
