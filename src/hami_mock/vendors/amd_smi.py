"""The look of rocm-smi."""

from hami_mock.vendors.smi import Tool, View

_COLUMNS = 124
_RULE = "=" * _COLUMNS

ROCM_SMI = Tool(
    name="rocm-smi",
    views={
        "": View(
            head=(
                "",
                f"{' ROCm System Management Interface ':=^{_COLUMNS}}",
                f"{' Concise Info ':=^{_COLUMNS}}",
                "Device  Node  IDs              Temp        Power     Partitions          "
                "SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%  ",
                "              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)  "
                "                                                  ",
                _RULE,
            ),
            card=(
                "{index:<7} {index:<5} {ids:<16} {heat:<11} {drawn:<9} NPS1, SPX, 0        "
                "{core:<8} {memory:<8} {cooling:<4} auto  {most:<7} {held:<6} {used:<5} ",
            ),
            foot=(_RULE, f"{' End of ROCm SMI Log ':=^{_COLUMNS}}"),
        ),
    },
    cells={
        "ids": "N/A,      N/A",
        "heat": "{temperature:.1f}°C",
        "drawn": "{power:.1f}W",
        "core": "{sm_clock}Mhz",
        "memory": "{memory_clock}Mhz",
        "cooling": "{fan}%",
        "most": "{power_limit:.1f}W",
        "held": "{memory_percent:.0f}%",
        "used": "{busy:.0f}%",
    },
)
