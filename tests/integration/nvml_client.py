"""A client of NVML that nobody here wrote (nvidia-ml-py), as a process of its own that obeys.

It reads a word a line: `cards`, `processes` and `damage` are answered with a line of JSON; `wait`
says `waiting`, and then which event came; `woken` tells when that was.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class NvmlClient:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def cards(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("cards")
        return found

    def ask(self, word: str) -> Any:
        self.say(word)
        return self.hear()

    def say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the client has ended"
        return json.loads(line)


def until(condition: Callable[[], bool]) -> None:
    """Look again and again: nothing tells what a client in another process sees."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def nvml_client(
    root: Path, within: Callable[..., list[str]] = lambda *argv: [*argv], **variables: str
) -> Iterator[NvmlClient]:
    """A client that has nothing but the library's folder; `within` makes the command to run it."""
    known = {"LD_LIBRARY_PATH": str(root / "lib64"), "PATH": os.environ["PATH"], **variables}
    process = subprocess.Popen(
        within(sys.executable, __file__),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=known,
    )
    try:
        yield NvmlClient(process)
    finally:
        process.kill()
        process.communicate()


def _cards(nvml: Any) -> list[dict[str, Any]]:
    return [_card(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]


def _card(nvml: Any, index: int) -> dict[str, Any]:
    try:
        card = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(card, nvml.nvmlMemory_v2)
        return {
            "name": nvml.nvmlDeviceGetName(card),
            "uuid": nvml.nvmlDeviceGetUUID(card),
            "bus": nvml.nvmlDeviceGetPciInfo(card).busId,
            "serial": nvml.nvmlDeviceGetSerial(card),
            "minor": nvml.nvmlDeviceGetMinorNumber(card),
            "total": memory.total,
            "used": memory.used,
            "busy": nvml.nvmlDeviceGetUtilizationRates(card).gpu,
            "power": nvml.nvmlDeviceGetPowerUsage(card),
            "temperature": nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU),
            "energy": nvml.nvmlDeviceGetTotalEnergyConsumption(card),
        }
    except nvml.NVMLError as error:
        return {"error": str(error)}


def _processes(nvml: Any) -> list[list[Any]]:
    cards = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
    return [
        [[each.pid, each.usedGpuMemory] for each in nvml.nvmlDeviceGetComputeRunningProcesses(card)]
        for card in cards
    ]


def _damage(nvml: Any) -> list[dict[str, Any]]:
    """Of each card, the pages and rows that it has lost; None where it refuses to say."""

    def pages(card: Any) -> list[int]:
        counts = [len(nvml.nvmlDeviceGetRetiredPages(card, cause)) for cause in (0, 1)]
        return [*counts, nvml.nvmlDeviceGetRetiredPagesPendingStatus(card)]

    def rows(card: Any) -> list[int]:
        return [*nvml.nvmlDeviceGetRemappedRows(card)[:2]]

    def asked(call: Callable[[Any], Any], card: Any) -> Any:
        try:
            return call(card)
        except nvml.NVMLError_NotSupported:
            return None

    cards = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
    return [{"pages": asked(pages, card), "rows": asked(rows, card)} for card in cards]


def _recovery(nvml: Any) -> list[int]:
    cards = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
    action = nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    return [nvml.nvmlDeviceGetFieldValues(card, [action])[0].value.uiVal for card in cards]


def _obey() -> None:
    import pynvml as nvml

    nvml.nvmlInit()
    watched = nvml.nvmlEventSetCreate()
    for index in range(nvml.nvmlDeviceGetCount()):
        card = nvml.nvmlDeviceGetHandleByIndex(index)
        nvml.nvmlDeviceRegisterEvents(card, nvml.nvmlEventTypeXidCriticalError, watched)
    woken = 0.0
    for line in sys.stdin:
        answer: Any
        match line.strip():
            case "cards":
                answer = _cards(nvml)
            case "processes":
                answer = _processes(nvml)
            case "woken":
                answer = woken
            case "recovery":
                answer = _recovery(nvml)
            case "namespace":
                answer = str(Path("/proc/self/ns/mnt").readlink())
            case "damage":
                answer = _damage(nvml)
            case _:
                print(json.dumps("waiting"), flush=True)
                event = nvml.nvmlEventSetWait_v2(watched, 60_000)
                woken = time.monotonic()
                answer = [nvml.nvmlDeviceGetUUID(event.device), event.eventData]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _obey()
