"""All that takes minutes, made once into the cache: best before any test waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from .base_image import base_image
from .binaries import kubernetes_binaries
from .errors import RequirementsMissing
from .hami_program import hami_scheduler
from .helm_program import helm
from .progress import Progress
from .requirements import ensure_requirements
from .versions import KubernetesVersion


def prepare(versions: Iterable[KubernetesVersion], progress: Progress) -> None:
    """Install, fetch and compile whatever the cache lacks.

    Raises RequirementsMissing when the machine can't run a cluster.
    """
    wanted = sorted(versions)
    for version in wanted:
        ensure_requirements(version, progress)
    base_image(progress)
    for version in wanted:
        kubernetes_binaries(version, progress)
    for program in (helm, hami_scheduler):
        with suppress(RequirementsMissing):  # not to be had everywhere: its tests say so
            program(progress)
