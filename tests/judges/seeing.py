"""What judges that list cards see, each in its own words, as the same records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.driver.state_file import MIB
from tests.judges.driver_root import Card, DriverRoot

_CLIENTS = Path(__file__).parent / "clients"


@dataclass(frozen=True)
class Seen:
    """A card, and what it does: MiB, percent, W, °C."""

    card: Card
    used: int
    utilization: int
    power: int
    temperature: int


def _own_client(name: str) -> Callable[[Path, DriverRoot], list[Seen]]:
    return lambda python, root: _lines(root.ask(python, _CLIENTS / name))


def _own_program(program: Path, root: DriverRoot) -> list[Seen]:
    return _lines(root.ask(program))


def _lines(text: str) -> list[Seen]:
    """Read what our small programs on others' libraries print."""
    return [_seen(line.split("\t")) for line in text.splitlines()]


def _seen(fields: list[str]) -> Seen:
    index, uuid, name, total, used, utilization, power, temperature = fields
    card = Card(int(index), uuid, name, int(total) // MIB)
    return Seen(card, int(used) // MIB, int(utilization), int(power) // 1000, int(temperature))


def _gpustat(python: Path, root: DriverRoot) -> list[Seen]:
    cards = json.loads(root.ask(python, "-m", "gpustat", "--json"))["gpus"]
    return [
        Seen(
            Card(each["index"], each["uuid"], each["name"], each["memory.total"]),
            each["memory.used"],
            each["utilization.gpu"],
            each["power.draw"],
            each["temperature.gpu"],
        )
        for each in cards
    ]


_QUERY = "index,uuid,name,memory.total,memory.used,utilization.gpu,power.draw,temperature.gpu"


def _nvidia_smi(program: Path, root: DriverRoot) -> list[Seen]:
    told = root.ask(program, f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")
    found = []
    for line in told.splitlines():
        index, uuid, name, total, used, utilization, power, temperature = line.split(", ")
        card = Card(int(index), uuid, name, int(total))
        found.append(Seen(card, int(used), int(utilization), int(float(power)), int(temperature)))
    return found


SEERS: Mapping[str, Callable[[Path, DriverRoot], list[Seen]]] = {
    "nvidia-ml-py": _own_client("nvidia_ml_py.py"),
    "py3nvml": _own_client("py3nvml_cards.py"),
    "nvitop": _own_client("nvitop_cards.py"),
    "gpustat": _gpustat,
    "nvml-wrapper": _own_program,
    "go-nvml": _own_program,
    "nvidia-smi-535": _nvidia_smi,
    "nvidia-smi-550": _nvidia_smi,
}
OLD = frozenset({"nvidia-ml-py", "py3nvml"})
"""Those that ask as programs did before 2021: then used memory had the reserved in it."""
