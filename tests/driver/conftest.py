"""The library as it is compiled here, and state files to show it."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pynvml
import pytest

import hatch_build
from hami_mock.views.driver.layout import STATE_VARIABLE
from tests.driver.agent import Agent
from tests.driver.smi import Smi
from tests.driver.state_file import StateFile


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave a machine with real cards alone: the library looks at its device nodes."""
    if Path("/dev/nvidia0").exists():
        for item in items:
            if "driver" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason="this machine has real cards"))


@pytest.fixture(scope="session")
def library_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled from native/ as it is now."""
    command = hatch_build.own_compiler()
    if command is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("library") / "lib64" / hatch_build.LIBRARY
    hatch_build.build([*command, *hatch_build.STRICT], path)
    return path


@pytest.fixture(scope="session")
def smi(library_path: Path) -> Smi:
    """Our nvidia-smi, which the same build made."""
    return Smi(library_path.with_name(hatch_build.PROGRAM))


@pytest.fixture(scope="session")
def library(library_path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(library_path))


@pytest.fixture(autouse=True)
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a container is told about its cards out of these tests."""
    for name in list(os.environ):
        if name.startswith(("NVIDIA_", "CUDA_")):
            monkeypatch.delenv(name)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateFile]:
    """A node with eight cards; the library finds it."""
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setenv(STATE_VARIABLE, str(folder))
    made = StateFile(folder, cards=8)
    yield made
    made.close()


@pytest.fixture
def client(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """NVIDIA's own Python client on the library, not initialized; it is clean again afterwards."""
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    yield pynvml
    while library.nvmlShutdown() == 0:
        pass


@pytest.fixture
def nvml(client: ModuleType, state: StateFile) -> ModuleType:
    """The same, initialized on the node with eight cards."""
    client.nvmlInit()
    return client


@pytest.fixture
def agent(state: StateFile) -> Iterator[Agent]:
    made = Agent(state)
    yield made
    made.stop()
