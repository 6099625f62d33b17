"""Helm: the user's own, the cached one, or compiled once into the cache."""

from __future__ import annotations

from pathlib import Path

from .go_install import GoProgram
from .named_program import named_program
from .progress import Progress

PROGRAM_VARIABLE = "E2E_HELM"
HELM = GoProgram(
    "helm",
    "helm.sh/helm/v4",
    "v4.3.1",
    ("cmd/helm",),
    otherwise=(f"or set {PROGRAM_VARIABLE} to the program (helm 3 or 4)",),
)


def helm(progress: Progress | None = None) -> Path:
    """The program: what $E2E_HELM names, or our own.

    Raises RequirementsMissing when it can't be had, and HarnessError when the variable names
    something else: who has set it wants it used.
    """
    return named_program(PROGRAM_VARIABLE) or HELM.folder(progress) / "helm"
