"""The Kubernetes releases that the suite is proven on: the newest patch of each minor.

A newer tag than these may exist without an entry in Go's checksum database; such a one cannot
be verified and so is not used. To move on: change the pin, run `make e2e-all`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .errors import HarnessError


@dataclass(frozen=True, order=True)
class KubernetesVersion:
    minor: int
    patch: int

    @property
    def tag(self) -> str:
        return f"v1.{self.minor}.{self.patch}"

    @property
    def staging_tag(self) -> str:
        """The libraries that live inside Kubernetes are published as v0.MINOR.PATCH."""
        return f"v0.{self.minor}.{self.patch}"

    def __str__(self) -> str:
        return f"1.{self.minor}.{self.patch}"


PINNED = (KubernetesVersion(35, 8), KubernetesVersion(36, 4), KubernetesVersion(37, 1))
DEFAULT = PINNED[0]
WORDS = {"all": PINNED, "oldest": PINNED[:1], "between": PINNED[1:-1], "newest": PINNED[-1:]}


def parse_versions(texts: Iterable[str]) -> tuple[KubernetesVersion, ...]:
    """What --kubernetes was given: releases or words for them; nothing means the default."""
    asked = list(texts) or [str(DEFAULT)]
    found = [each for text in asked for each in WORDS.get(text) or [parse_version(text)]]
    return tuple(dict.fromkeys(found))


def parse_version(text: str) -> KubernetesVersion:
    """'1.35' gives the pinned patch of that minor; '1.35.8' or 'v1.35.8' is taken as it is."""
    parts = text.strip().removeprefix("v").split(".")
    known = ", ".join(f"1.{pin.minor}" for pin in PINNED)
    if parts[0] != "1" or not all(part.isdecimal() for part in parts) or len(parts) not in (2, 3):
        raise HarnessError(f"Kubernetes version {text!r} is not understood: use one of {known}")
    if len(parts) == 3:
        return KubernetesVersion(int(parts[1]), int(parts[2]))
    for pin in PINNED:
        if pin.minor == int(parts[1]):
            return pin
    raise HarnessError(f"no patch of Kubernetes {text} is pinned: use one of {known}, or 1.X.Y")
