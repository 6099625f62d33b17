"""The driver of arm64, run by qemu: it must say what this machine's does.

What qemu can't show is how such a machine orders reads and writes: it orders them as this one does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hami_mock.errors import StartError
from hami_mock.views.driver import layout
from hami_mock.views.driver.compiled import find_library
from tests.driver.state_file import StateFile
from tests.driver.test_events import WAITER, tell_twice, waiting
from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import RequirementsMissing
from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot
from tests.judges.nodes import NODES

_MACHINE = "aarch64"
_CLIENTS = Path(__file__).parent / "clients"


def compiled() -> None:
    try:
        find_library(_MACHINE)
    except StartError as error:
        raise RequirementsMissing([f"{error} (make native)"]) from error


@pytest.fixture
def python(have: Have) -> Path:
    """A Python of arm64."""
    return have("qemu-aarch64", compiled)


@pytest.fixture
def on_arm64(tmp_path: Path, have: Have, python: Path) -> Callable[[DriverRoot], DriverRoot]:
    """Make the same root of arm64: other files, the same state."""
    libraries, clients = tmp_path / "lib64", tmp_path / "clients"
    for folder in (libraries, clients):
        folder.mkdir()
    shutil.copy(find_library(_MACHINE), libraries)
    where = run([have("nvidia-ml-py"), "-c", "import pynvml; print(pynvml.__file__)"])
    shutil.copy(where.strip(), clients)

    def get(root: DriverRoot) -> DriverRoot:
        variables = {
            layout.STATE_VARIABLE: str(root.folder / "state"),
            "PYTHONPATH": str(clients),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return replace(root, folder=tmp_path, variables=variables)

    return get


def test_it_is_another_machine(python: Path) -> None:
    assert run([python, "-c", "import os; print(os.uname().machine)"]).strip() == _MACHINE


@pytest.mark.parametrize("client", ["nvidia_ml_py.py", "walk.py"])
def test_a_client_is_told_the_same(
    have: Have,
    root_of: MakeRoot,
    on_arm64: Callable[[DriverRoot], DriverRoot],
    python: Path,
    client: str,
) -> None:
    here = root_of("H100-SXM5-80GB", 8)
    told = on_arm64(here).ask(python, _CLIENTS / client)
    assert told == here.ask(have("nvidia-ml-py"), _CLIENTS / client)
    assert len(told.splitlines()) >= len(here.cards)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-L"],
        ["-q"],
        ["topo", "-m"],
        ["nvlink", "-s"],
        ["mig", "-lgip"],
        ["pmon", "-c", "1"],
        ["--query-gpu=index,uuid,pci.bus_id,memory.free,power.draw", "--format=csv"],
    ],
)
def test_nvidia_smi_shows_the_same(
    root_of: MakeRoot,
    on_arm64: Callable[[DriverRoot], DriverRoot],
    python: Path,
    arguments: list[str],
) -> None:
    here = root_of("H100-SXM5-80GB", 8)
    machine = python.with_name("run")
    there = on_arm64(here).ask(machine, find_library(_MACHINE).with_name("nvidia-smi"), *arguments)
    moment = re.compile(r"\w{3} \w{3} +\d+ [\d:]{8} \d{4}")
    assert moment.sub("", there) == moment.sub(
        "", here.ask(here.folder / "bin/nvidia-smi", *arguments)
    )


def test_a_xid_reaches_it(
    invented: Callable[[int], tuple[DriverRoot, StateFile]],
    on_arm64: Callable[[DriverRoot], DriverRoot],
    python: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, state = invented(8)
    there = on_arm64(root)
    monkeypatch.setenv(layout.STATE_VARIABLE, there.variables[layout.STATE_VARIABLE])
    with waiting([python, "-c", WAITER, there.folder / "lib64/libnvidia-ml.so.1"]) as process:
        tell_twice(process, state)


@pytest.mark.parametrize(("model", "cards"), NODES)
def test_cards_of_other_nodes(
    root_of: MakeRoot,
    on_arm64: Callable[[DriverRoot], DriverRoot],
    python: Path,
    model: str,
    cards: int,
) -> None:
    root = root_of(model, cards)
    rows = on_arm64(root).ask(python, _CLIENTS / "nvidia_ml_py.py").splitlines()
    assert [row.split("\t")[:3] for row in rows] == [
        [str(card.index), card.uuid, card.name] for card in root.cards
    ]


def test_another_c_library_loads_it(python: Path) -> None:
    loader = python.with_name("root") / f"lib/ld-musl-{_MACHINE}.so.1"
    told = subprocess.run(
        [python.with_name("run"), loader, "--list", find_library(_MACHINE)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    assert "not found" not in told.stdout
