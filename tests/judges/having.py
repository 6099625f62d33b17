"""How a judge is had: the user's own, an installed one, or made once into the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from tests.e2e.harness.cache import appearing_whole, cache_folder, exclusive
from tests.e2e.harness.errors import CommandFailed, RequirementsMissing
from tests.e2e.harness.named_program import named_program


class NotServed(RequirementsMissing):
    """A registry doesn't give it to this machine: nobody here can help that."""

    @classmethod
    def by(cls, what: str, error: CommandFailed) -> NotServed:
        # Go ends what it says with a brace.
        said = [line.strip() for line in error.output.splitlines() if line.strip(" }\t")]
        return cls([f"{what} isn't served here ({said[-1] if said else 'no reason given'})"])


def variable_of(name: str) -> str:
    """Return the variable by which a user names a program of their own."""
    return f"JUDGE_{name.upper().replace('-', '_')}"


def given(name: str, *, is_installed_one_good: bool = True) -> Path | None:
    """Return the user's own program, or the installed one.

    Raises HarnessError when the variable names something else.
    """
    if own := named_program(variable_of(name)):
        return own
    installed = shutil.which(name) if is_installed_one_good else None
    return Path(installed) if installed else None


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, filled by `make` where it isn't there yet."""
    target = cache_folder() / "judges" / name
    if target.exists():
        return target
    with exclusive(f"judge-{name}"):
        if not target.exists():  # else another run made it while this one waited for the lock
            with appearing_whole(target) as scratch:
                scratch.mkdir()
                make(scratch)
    return target


def mark_of(files: Iterable[Path]) -> str:
    """Return what tells these sources from others: what is made of others is another program."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def need(judge: str, tools: Sequence[str]) -> None:
    """Raise RequirementsMissing unless these programs are on this machine."""
    missing = [f"{tool} is missing, which gets {judge}" for tool in tools if not shutil.which(tool)]
    if missing:
        raise RequirementsMissing([*missing, f"or set {variable_of(judge)}"])


def skip_or_fail(judge: str, missing: RequirementsMissing) -> NoReturn:
    """Skip a test whose judge can't be had; in CI only what a registry doesn't serve may lack."""
    told = f"{judge}: {missing}"
    if os.environ.get("CI") == "true" and not isinstance(missing, NotServed):
        pytest.fail(told, pytrace=False)
    pytest.skip(told)
