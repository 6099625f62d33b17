"""A driver root that judges look at, and what they should see."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hami_mock.vendors.catalog import models
from hami_mock.views.driver.compiled import find_library
from tests.driver.state_file import MIB, StateFile, card_uuid
from tests.e2e.harness.commands import run
from tests.integration.agents import ONLY_NVIDIA, run_cli

_VERSION = "580.65.06"


@dataclass(frozen=True)
class Card:
    """What every judge shows of a card."""

    index: int
    uuid: str
    name: str
    memory: int
    """MiB"""


@dataclass(frozen=True)
class DriverRoot:
    folder: Path
    cards: Sequence[Card]
    variables: Mapping[str, str] = field(default_factory=dict)
    """What else its clients are started with."""

    @property
    def environment(self) -> dict[str, str]:
        """Return what a client needs: the library, and nothing else."""
        return os.environ | {"LD_LIBRARY_PATH": str(self.folder / "lib64"), **self.variables}

    def ask(self, program: Path, *arguments: str | Path) -> str:
        """Run a client to its end; return what it says. Raises CommandFailed."""
        return run([program, *arguments], env=self.environment)


def made(folder: Path, model: str, cards: int, *flags: str) -> DriverRoot:
    """Make a root as users do."""
    return _made(folder, f"--nvidia-model={model}", f"--nvidia-cards={cards}", *flags)


def of_every_model(folder: Path) -> DriverRoot:
    """Make a root with a card of each model that is known, all on one node."""
    groups = [{"cards": 1, "model": name} for name in models()["nvidia"]]
    (config := folder.with_suffix(".yaml")).write_text(json.dumps({"nvidia": {"groups": groups}}))
    return _made(folder, f"--config={config}")


def _made(folder: Path, *flags: str) -> DriverRoot:
    chosen = [*ONLY_NVIDIA, *flags]
    done = run_cli("driver", "all", f"--driver-root={folder}", *chosen)
    assert done.returncode == 0, done.stderr
    return DriverRoot(folder, planned(*chosen))


def planned(*flags: str) -> list[Card]:
    """Return the cards that a node with these flags has."""
    # Its resources don't matter here, but must fit.
    told = run_cli("plan", "-o", "json", "--nvidia-memory-factor=auto", *flags)
    assert told.returncode == 0, told.stderr
    known = models()["nvidia"]
    return [
        Card(index, card["uuid"], known[card["model"]].product, card["memory"])
        for index, card in enumerate(json.loads(told.stdout)["cards"])
    ]


def invented(folder: Path, cards: int) -> tuple[DriverRoot, StateFile]:
    """Make a root whose cards are the tests' own: each number tells which card it is of."""
    libraries, state = folder / "lib64", folder / "state"
    libraries.mkdir(parents=True)
    state.mkdir()
    shutil.copy(find_library(), libraries / f"libnvidia-ml.so.{_VERSION}")
    for link in ("libnvidia-ml.so.1", "libnvidia-ml.so"):
        (libraries / link).symlink_to(f"libnvidia-ml.so.{_VERSION}")
    file = StateFile(state, cards)
    memory = 40960 * MIB
    shown = [
        Card(index, card_uuid(index), "NVIDIA A100-SXM4-40GB", memory // MIB)
        for index in range(cards)
    ]
    return DriverRoot(folder, shown), file
