"""The cache folder outside the tree, and how things get into it whole or not at all."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hami_mock.fleet.sandbox import programs


def cache_folder() -> Path:
    """The folder where the program looks for what it can't bring along; made when absent."""
    folder = programs.cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def exclusive(name: str) -> Iterator[None]:
    """One process at a time; the kernel gives the lock back however the holder ends."""
    lock = cache_folder() / f"{name}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def appearing_whole(target: Path) -> Iterator[Path]:
    """A scratch path that becomes `target` by one rename, only when the block succeeds.

    So an interrupted build is never taken for a good one. Call it under `exclusive`: what an
    earlier run left unfinished is removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}.unfinished-"
    for stale in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        result = scratch / target.name
        yield result
        result.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
