"""Cambricon's mlu-exporter. `mlu_container` says who holds a card; HAMi-WebUI joins on its uuid."""

from hami_mock.vendors.exporter import MIB, Exporter, Metric, Per

_HELD = "Always 1; a container that the card was given to."

EXPORTER = Exporter(
    port=30108,
    driver="v6.2.10",
    card_labels=(
        ("driver", "{driver}"),
        ("mcu", "v1.1.4"),
        ("mlu", "{index}"),
        ("model", "{product}"),
        ("node", "{node}"),
        ("sn", "{serial}"),
        ("uuid", "{uuid}"),
    ),
    # Its cards' rows name no container.
    container_labels=(),
    metrics=(
        Metric("mlu_utilization", "busy", "Utilization of the MLU (in %)."),
        Metric("mlu_memory_used", "memory_used", "Used memory (in bytes).", scale=MIB),
        Metric("mlu_memory_total", "memory_total", "Total memory (in bytes).", scale=MIB),
        Metric("mlu_memory_utilization", "memory_percent", "Used memory (in %)."),
        Metric("mlu_temperature", "temperature", "Temperature of the board (in C)."),
        Metric(
            "mlu_memory_temperature",
            "memory_temperature",
            "Temperature of the memory (in C).",
            labels=(("memory_die", "0"),),
        ),
        Metric("mlu_power_usage", "power", "Power draw (in W)."),
        Metric("mlu_fan_speed", "fan_turns", "Fan speed in turns per minute; -1 without a fan."),
        Metric("mlu_health", "is_healthy", "1 if the MLU is healthy."),
        *(
            Metric(
                "mlu_container",
                "one",
                _HELD,
                per=Per.CONTAINER,
                labels=(
                    ("namespace", "{namespace}"),
                    ("pod", "{pod}"),
                    ("container", "{container}"),
                    ("type", f"mlu370.smlu.{share}"),
                ),
            )
            for share in ("vcore", "vmemory")
        ),
    ),
)
