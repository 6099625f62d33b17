"""Which judges ran: each by name, and a closing line that counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.driver.state_file import StateFile
from tests.e2e.harness.errors import RequirementsMissing
from tests.judges import driver_root
from tests.judges.driver_root import DriverRoot
from tests.judges.having import skip_or_fail
from tests.judges.table import JUDGES

_asked = pytest.StashKey[dict[str, str]]()


class Have(Protocol):
    def __call__(self, name: str, *needs: Callable[[], None]) -> Path: ...


MakeRoot = Callable[..., DriverRoot]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave a machine with real cards alone: the library looks at its device nodes."""
    if Path("/dev/nvidia0").exists():
        for item in items:
            if "judges" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason="this machine has real cards"))


@pytest.fixture(scope="session")
def have(pytestconfig: pytest.Config) -> Have:
    """Get a judge's program by name; skip the test where it can't be had, or can't run."""
    asked = pytestconfig.stash.setdefault(_asked, {})

    def get(name: str, *needs: Callable[[], None]) -> Path:
        try:
            for need in needs:
                need()
            program = JUDGES[name]()
        except RequirementsMissing as missing:
            asked[name] = "skipped"
            skip_or_fail(name, missing)
        asked[name] = "ran"
        return program

    return get


@pytest.fixture(scope="session")
def root_of(tmp_path_factory: pytest.TempPathFactory) -> MakeRoot:
    """Make a driver root of a model and a number of cards, once."""
    made: dict[tuple[object, ...], DriverRoot] = {}

    def get(model: str, cards: int, *flags: str) -> DriverRoot:
        key = (model, cards, *flags)
        if key not in made:
            folder = tmp_path_factory.mktemp("driver") / "root"
            made[key] = driver_root.made(folder, model, cards, *flags)
        return made[key]

    return get


@pytest.fixture(scope="session")
def every_model(tmp_path_factory: pytest.TempPathFactory) -> DriverRoot:
    """A driver root with a card of each model of the catalog."""
    return driver_root.of_every_model(tmp_path_factory.mktemp("catalog") / "root")


@pytest.fixture
def invented(tmp_path: Path) -> Iterator[Callable[[int], tuple[DriverRoot, StateFile]]]:
    """Make a root with a state file that the test writes itself."""
    files: list[StateFile] = []

    def get(cards: int) -> tuple[DriverRoot, StateFile]:
        root, file = driver_root.invented(tmp_path / "root", cards)
        files.append(file)
        return root, file

    yield get
    for file in files:
        file.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    asked = terminalreporter.config.stash.get(_asked, {})
    skipped = [name for name, what in asked.items() if what == "skipped"]
    told = f"judges: {len(asked) - len(skipped)} ran, {len(skipped)} skipped"
    terminalreporter.write_line(f"{told}: {', '.join(skipped)}" if skipped else told)
