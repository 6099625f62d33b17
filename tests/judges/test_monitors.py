"""Monitors draw our cards: those that people look at."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.driver.state_file import StateFile, live
from tests.judges.conftest import Have
from tests.judges.driver_root import DriverRoot
from tests.judges.terminal import drawn

Invented = Callable[[int], tuple[DriverRoot, StateFile]]


@pytest.mark.parametrize("cards", [1, 8, 16])
def test_nvitop(have: Have, invented: Invented, cards: int) -> None:
    python, (root, _) = have("nvitop"), invented(cards)
    told = root.ask(python, "-m", "nvitop", "--once")
    found = re.findall(r"(\d+)C +P0 +250W / 400W +│ +(\d+)MiB / 40.00GiB +│ +(\d+)% ", told)
    assert found == [
        (str(live(index)["temperature"]), str(1000 + index), str(live(index)["gpu"]))
        for index in range(cards)
    ]
    # Processes, with what each takes of its card; one of this machine may have the same number.
    processes = re.findall(r"│ +(\d+) +(\d+) C +\S+ +600.0MiB +20 +10 ", told)
    assert processes == [
        (str(index), str(each["pid"]))
        for index in range(cards)
        for each in live(index)["processes"]
    ]


@pytest.mark.parametrize("cards", [1, 8])
def test_nvtop(have: Have, invented: Invented, cards: int) -> None:
    program, (root, _) = have("nvtop"), invented(cards)

    def shows_all(text: str) -> bool:
        return all(f"Device {index} [NVIDIA A100-SXM4-40GB]" in text for index in range(cards))

    text, code = drawn([program], root.environment, shows_all, leave=b"q")
    assert shows_all(text), text[-2000:]
    assert code == 0
    assert "250 / 400 W" in text or "250/400W" in text.replace(" ", ""), text[-2000:]
