"""The look of nvidia-smi since branch 550. In a driver root there is a program of that name."""

from hami_mock.vendors import catalog
from hami_mock.vendors.nvidia_boards import bar1
from hami_mock.vendors.nvidia_mig_profiles import instance_profiles
from hami_mock.vendors.nvidia_versions import cuda
from hami_mock.vendors.physics import traits
from hami_mock.vendors.smi import Parts, Processes, Tool, Values, View

_MAKER = "nvidia"
_WIDE = "+" + "-" * 89 + "+"
_ENGINES = ("copy", "encoders", "decoders", "ofas", "jpegs")
_PARTS_RULE = "+" + "+".join("-" * width for width in (18, 34, 11, 23)) + "+"
_RULE = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"


def _more(values: Values) -> Values:
    mig = values["is_cut"]
    # In MIG mode only the instances know what errors they had.
    of_whole = {"ecc_errors": "On"} if mig and values["health"] != "lost" else {}
    return {
        **of_whole,
        "cuda": cuda(values["driver_version"]),
        "mig": None if mig is None else ("Disabled", "Enabled")[mig],
        "state": _state(values),
        "fan_share": None if values["fan"] is None else f"{values['fan']}%",
    }


def _more_of_part(values: Values) -> Values:
    """Return what an instance has of the card; its profile may be a part's: 1c.3g.20gb."""
    model = catalog.find(_MAKER, values["model"])
    profiles = {each.name: each for each in instance_profiles(model)} if model else {}
    slices, _, name = values["profile"].rpartition("c.")
    profile = profiles.get(name)
    if model is None or profile is None:
        return dict.fromkeys((*_ENGINES, "multiprocessors", "part_bar1"))
    units = max(each.units for each in profiles.values())
    each_unit = bar1(model, values["memory_total"]) / units
    return {
        **{engine: getattr(profile, engine) for engine in _ENGINES},
        "multiprocessors": profile.multiprocessors
        * int(slices or profile.slices)
        // profile.slices,
        # A little is kept of each.
        "part_bar1": int(each_unit * profile.units) - 1,
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
        "|" + _RULE[1:],
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | "
        "Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | "
        "GPU-Util  Compute M. |",
        "|                                         |                        |"
        "               MIG M. |",
        "|" + "=" * 41 + "+" + "=" * 24 + "+" + "=" * 22 + "|",
    ),
    card=(
        "| {index:>3}  {name:<27}    On  | {bus:>18} Off | {ecc_errors:>20} |",
        "|{fan_share:>4}  {heat:>4}  {state:>4} {drawn:>23} | {held:>22} | "
        "{used:>7}      Default |",
        "|                                         |                        | {mig:>20} |",
        _RULE,
    ),
    parts=Parts(
        head=(
            "",
            _WIDE,
            f"| {'MIG devices:':<87} |",
            _PARTS_RULE,
            "| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|"
            "      Shared           |",
            "|      ID  ID  Dev |                       BAR1-Usage | SM     Unc|"
            " CE ENC DEC OFA JPG    |",
            "|                  |                                  |        ECC|"
            "                       |",
            "|" + _PARTS_RULE[1:-1].replace("-", "=") + "|",
        ),
        part=(
            "|{index:>3} {gi:>4} {ci:>3} {number:>3}  |{part_held:>30}    |"
            "{multiprocessors:>3}      0 |"
            "{copy:>3} {encoders:>3} {decoders:>4} {ofas:>4} {jpegs:>4} |",
            "|                  |{bar1_held:>32}  |           |                       |",
            _PARTS_RULE,
        ),
        none=(f"|  {'No MIG devices found':<86} |", _WIDE),
    ),
    processes=Processes(
        head=(
            " " * 89,
            _WIDE,
            f"| {'Processes:':<87} |",
            "|  GPU   GI   CI        PID   Type   Process name"
            "                              GPU Memory |",
            "|        ID   ID                                 "
            "                              Usage      |",
            "|" + "=" * 89 + "|",
        ),
        row="| {index:>4}   {gi_id:>3}  {ci_id:>3}{pid:>10}{type:>7}   {process:<38}{taken:>14} |",
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
        "part_held": "{instance_used}MiB / {instance_memory:>5}MiB",
        "bar1_held": "0MiB / {part_bar1:>5}MiB",
        "taken": "{process_memory}MiB",
        "gi_id": "{gi:>2} ",
        "ci_id": "{ci:>2} ",
        "type": "C",
    },
    lost="ERR!",
    more=_more,
    more_of_part=_more_of_part,
    query="--query-gpu",
)
