"""The look of nvidia-smi since branch 550. In a driver root there is a program of that name."""

from hami_mock.vendors import catalog
from hami_mock.vendors.nvidia_driver import cuda
from hami_mock.vendors.physics import traits
from hami_mock.vendors.smi import Processes, Tool, Values, View

_MAKER = "nvidia"
_WIDE = "+" + "-" * 89 + "+"
_RULE = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"


def _more(values: Values) -> Values:
    mig = values["is_cut"]
    # In MIG mode only the instances know how busy they are, and what errors they had.
    of_whole = {"busy": None, "ecc_errors": "On"} if mig and values["health"] != "lost" else {}
    return {
        **of_whole,
        "cuda": cuda(values["driver_version"]),
        "mig": None if mig is None else ("Disabled", "Enabled")[mig],
        "state": _state(values),
        "fan_share": None if values["fan"] is None else f"{values['fan']}%",
    }


def _state(values: Values) -> str | None:
    """Return the performance state: as NVML says, 8 while the memory has its lower clock."""
    clock, model = values["memory_clock"], catalog.find(_MAKER, values["model"])
    if clock is None or model is None:
        return None if clock is None else "P0"
    nature = traits(_MAKER, model)
    return "P8" if clock <= nature.idle_memory_clock < nature.memory_clock else "P0"


_TABLE = View(
    head=(
        "{time:%a %b %e %H:%M:%S %Y}",
        _WIDE,
        "| NVIDIA-SMI {driver_version:<22} Driver Version: {driver_version:<14} "
        "CUDA Version: {cuda:<8} |",
        _RULE,
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | "
        "Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | "
        "GPU-Util  Compute M. |",
        "|                                         |                        |"
        "               MIG M. |",
        "|" + "=" * 41 + "+" + "=" * 24 + "+" + "=" * 22 + "|",
    ),
    card=(
        "| {index:>3}  {name:<26}     On  | {bus:>18} Off | {ecc_errors:>20} |",
        "|{fan_share:>4}  {heat:>4}  {state:>4} {drawn:>23} | {held:>22} | "
        "{used:>7}      Default |",
        "|                                         |                        | {mig:>20} |",
        _RULE,
    ),
    processes=Processes(
        head=(
            "",
            _WIDE,
            f"| {'Processes:':<87} |",
            "|  GPU   GI   CI              PID   Type   Process name"
            "                        GPU Memory |",
            "|        ID   ID                                       "
            "                        Usage      |",
            "|" + "=" * 89 + "|",
        ),
        row="| {index:>4} {gi:>5} {ci:>4} {pid:>15} {type:>6}   {process:<37} {taken:>8} |",
        none=f"|  {'No running processes found':<86} |",
        end=(_WIDE,),
    ),
)

NVIDIA_SMI = Tool(
    name="nvidia-smi",
    views={
        "": _TABLE,
        "-L": View(
            card=("GPU {index}: {name} (UUID: {uuid})",),
            instance=("  MIG {profile:<15} Device {number:>2}: (UUID: {instance})",),
        ),
    },
    cells={
        "heat": "{temperature:.0f}C",
        "drawn": "{power:.0f}W / {power_limit:>4.0f}W",
        "held": "{memory_used}MiB / {memory_total:>6}MiB",
        "used": "{busy:.0f}%",
        "taken": "{process_memory}MiB",
        "type": "C",
    },
    lost="ERR!",
    more=_more,
    query="--query-gpu",
)
