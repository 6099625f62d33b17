"""Monitors draw our cards: those that people look at."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.driver.state_file import StateFile, live
from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot
from tests.judges.nodes import NODES
from tests.judges.terminal import drawn

MOST_OF_NVTOP = 64
"""It writes past its own arrays, and is ended for it, where there are more."""
Invented = Callable[[int], tuple[DriverRoot, StateFile]]


@pytest.mark.parametrize("cards", [1, 8, 16, 128])
def test_nvitop(have: Have, invented: Invented, cards: int) -> None:
    python, (root, _) = have("nvitop"), invented(cards)
    told = root.ask(python, "-m", "nvitop", "--once")
    found = re.findall(r"(\d+)C +P0 +250W / 400W +│ +(\d+)MiB / 40.00GiB +│ +(\d+)% ", told)
    assert found == [
        (str(live(index)["temperature"]), str(1000 + index), str(live(index)["gpu"]))
        for index in range(cards)
    ]
    # Processes, with what each takes of its card. One of this machine may have the same number;
    # nvitop shows that one first.
    processes = re.findall(r"│ +(\d+) +(\d+) C +\S+ +600.0MiB +20 +10 ", told)
    assert sorted(processes) == sorted(
        (str(index), str(each["pid"]))
        for index in range(cards)
        for each in live(index)["processes"]
    )


@pytest.mark.parametrize(("model", "cards"), NODES)
def test_nvitop_of_other_models(have: Have, root_of: MakeRoot, model: str, cards: int) -> None:
    python, root = have("nvitop"), root_of(model, cards)
    told = root.ask(python, "-m", "nvitop", "--once")
    found = re.findall(r"│ +(\d+)  (\S.*?) +On │ 0000\w{4}:", told)
    # It leaves out the maker's name.
    wanted = [(str(card.index), card.name.removeprefix("NVIDIA ")) for card in root.cards]
    assert found == wanted


@pytest.mark.parametrize(
    ("model", "cards"), [(model, min(cards, MOST_OF_NVTOP)) for model, cards in NODES]
)
def test_nvtop(have: Have, root_of: MakeRoot, model: str, cards: int) -> None:
    program, root = have("nvtop"), root_of(model, cards)

    def shows_all(text: str) -> bool:
        return all(f"Device {card.index:<2}[{card.name}]" in text for card in root.cards)

    text, code = drawn([program], root.environment, shows_all, leave=b"q")
    assert shows_all(text), text[-2000:]
    assert code == 0


def test_nvtop_shows_what_cards_do(have: Have, invented: Invented) -> None:
    program, (root, _) = have("nvtop"), invented(8)

    def shows_power(text: str) -> bool:
        return text.count("250 / 400 W") >= len(root.cards)

    text, code = drawn([program], root.environment, shows_power, leave=b"q")
    assert shows_power(text), text[-2000:]
    assert code == 0
