"""The look of cnmon."""

from hami_mock.vendors.cambricon_exporter import EXPORTER
from hami_mock.vendors.smi import Processes, Tool, View

_WIDE = "+" + "-" * 78 + "+"
_RULE = "+" + "-" * 31 + "+" + "-" * 22 + "+" + "-" * 23 + "+"

CNMON = Tool(
    name="cnmon",
    # It comes with the driver, and has its number.
    version=EXPORTER.driver,
    views={
        "": View(
            head=(
                "{time:%a %b %e %H:%M:%S %Y}",
                _WIDE,
                "| CNMON {version:<46} {driver:>23} |",
                _RULE,
                "| Card  VF  Name       Firmware |               Bus-Id | Util        Ecc-Error |",
                "| Fan   Temp      Pwr:Usage/Cap |         Memory-Usage | Mode     Compute-Mode |",
                "|" + "=" * 31 + "+" + "=" * 22 + "+" + "=" * 23 + "|",
            ),
            card=(
                "| {index:<5} /   {name:<12} v1.1.6 | {short_bus:>20} | "
                "{used:<10} {ecc_errors:>10} |",
                "|{cooling:>4}   {heat:<5} {drawn:>17} |{held:>21} | FULL          Default |",
                _RULE,
            ),
            processes=Processes(
                head=(
                    "",
                    _WIDE,
                    f"| {'Processes:':<76} |",
                    "|  Card  MI  PID     Command Line                             "
                    "MLU Memory Usage |",
                    "|" + "=" * 78 + "|",
                ),
                row="|  {index:<5} /   {pid:<7} {process:<36} {taken:>20} |",
                none=f"|  {'No running processes found':<75} |",
                end=(_WIDE,),
            ),
        ),
    },
    cells={
        "driver": "Driver {version}",
        "cooling": "{fan}%",
        "heat": "{temperature:.0f}C",
        "drawn": "{power:.0f} W/ {power_limit:.0f} W",
        "held": "{memory_used} MiB/ {memory_total} MiB",
        "used": "{busy:.0f}%",
        "taken": "{process_memory} MiB",
    },
)
