"""All that takes minutes, made once into the cache: best before any test waits for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress

from .base_image import base_image
from .binaries import available_binaries, kubernetes_binaries
from .errors import RequirementsMissing
from .hami_program import hami_scheduler
from .helm_program import helm
from .kwok_program import kwok
from .progress import Progress
from .requirements import ensure_requirements
from .versions import PINNED, KubernetesVersion


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
    for program in (helm, kwok, hami_scheduler):
        with suppress(RequirementsMissing):  # not to be had everywhere: its tests say so
            program(progress)


def prepare_fleet(versions: Iterable[KubernetesVersion], progress: Progress) -> None:
    """Make what a control plane without nodes needs, unless some release is there already.

    Raises RequirementsMissing when KWOK or Kubernetes can't be compiled.
    """
    kwok(progress)
    wanted = sorted(versions)
    if not any(map(available_binaries, PINNED)):
        for version in wanted:
            kubernetes_binaries(version, progress)
    if shutil.which("etcd") is None:
        raise RequirementsMissing(["etcd is missing: apt-get install etcd-server"])
