"""The look of hy-smi."""

from hami_mock.vendors.smi import Tool, View

_COLUMNS = 96
_RULE = "=" * _COLUMNS

HY_SMI = Tool(
    name="hy-smi",
    views={
        "": View(
            head=(
                "",
                f"{' System Management Interface ':=^{_COLUMNS}}",
                _RULE,
                "HCU     Temp     AvgPwr     Perf     PwrCap     VRAM%      HCU%      Mode     ",
            ),
            card=(
                "{index:<7} {heat:<8} {drawn:<10} auto     {most:<10} {held:<10} {used:<9} "
                "{health_word:<9}",
            ),
            foot=(_RULE, f"{' End of SMI Log ':=^{_COLUMNS}}"),
        ),
    },
    cells={
        "heat": "{temperature:.1f}C",
        "drawn": "{power:.1f}W",
        "most": "{power_limit:.1f}W",
        "held": "{memory_percent:.0f}%",
        "used": "{busy:.1f}%",
    },
    health={"healthy": "Normal", "degraded": "Normal", "unhealthy": "Fault", "lost": "Lost"},
)
