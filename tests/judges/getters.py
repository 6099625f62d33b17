"""nvidia-ml-py's getters that need only a card, and which cards between them answer most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tests.judges.driver_root import DriverRoot

_WALK = Path(__file__).parent / "clients" / "walk.py"
_ANSWERED = "answered"
# No board has everything: fans, retired pages and encrypted memory are of different ones.
_DIFFERENT = (
    ("H100-SXM5-80GB", "--nvidia-mig=1g.10gb"),
    ("B200",),
    ("RTX-4090",),
    ("V100-SXM2-32GB",),
)


def walked(python: Path, root: DriverRoot, of: str = "card") -> dict[str, str]:
    """Return what came of each getter of the first card or MIG device: an error, or "answered"."""
    lines = root.ask(python, _WALK, of).splitlines()
    return dict(line.split("\t") for line in lines)


def silent_of(found: dict[str, str]) -> set[str]:
    return {name for name, said in found.items() if said != _ANSWERED}


def silent_everywhere(python: Path, root_of: Callable[..., DriverRoot]) -> set[str]:
    """Return the getters that none of the different cards answers, nor a part of one."""
    return set.intersection(*map(silent_of, _walks(python, root_of)))


def _walks(python: Path, root_of: Callable[..., DriverRoot]) -> Iterable[dict[str, str]]:
    for model, *flags in _DIFFERENT:
        root = root_of(model, 1, *flags)
        yield walked(python, root)
        if flags:
            yield walked(python, root, "mig")
