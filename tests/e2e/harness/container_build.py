"""Building the project's Containerfile into an image archive."""

from __future__ import annotations

import ast
import configparser
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .base_image import base_image, base_image_name
from .cache import cache_folder, exclusive
from .commands import alone, run
from .errors import CommandFailed
from .progress import Progress

BUILD_TIMEOUT_S = 900.0
PIP_CONF = Path("/etc/pip.conf")


def build_image(
    containerfile: Path,
    context: Path,
    name: str,
    archive: Path,
    progress: Progress,
    *,
    build_args: Mapping[str, str] | None = None,
) -> None:
    """Build with BASE set to the base image; write a docker-archive that holds it as `name`."""
    base = base_image(progress)
    scratch_parent = cache_folder() / "builds"
    scratch_parent.mkdir(exist_ok=True)
    with exclusive("image-build"), progress.step(f"build the image {name}"):
        _remove_interrupted(scratch_parent)
        with tempfile.TemporaryDirectory(dir=scratch_parent) as folder:
            scratch = Path(folder)
            _buildah(scratch, "pull", f"docker-archive:{base}")
            arguments = {"BASE": base_image_name(), **(build_args or {})}
            words = [f"--build-arg={key}={value}" for key, value in arguments.items()]
            words += [f"--volume={volume}" for volume in _pip_settings(scratch)]
            # Never asked of a registry: the base was put there just now.
            words += ["--pull=never", "--isolation=chroot", "--format=docker", f"--tag={name}"]
            _buildah(scratch, "build", *words, f"--file={containerfile}", str(context))
            exported = scratch / "image.tar"
            _buildah(scratch, "push", name, f"docker-archive:{exported}:{name}")
            archive.parent.mkdir(parents=True, exist_ok=True)
            run(["mv", exported, archive])


def _buildah(scratch: Path, *words: str) -> None:
    """Run buildah with its storage in `scratch`."""
    storage = ["--storage-driver=vfs", f"--root={scratch}/root", f"--runroot={scratch}/run"]
    env = {**os.environ, "TMPDIR": str(scratch), "HOME": str(scratch)}
    run(alone(["buildah", *storage, *words]), env=env, timeout=BUILD_TIMEOUT_S)


def _remove_interrupted(parent: Path) -> None:
    for stale in parent.iterdir():
        run(["rm", "-rf", "--one-file-system", stale])


def _pip_settings(scratch: Path) -> list[str]:
    """Volumes that let pip inside the build reach its index the way pip on this machine does.

    The settings of every level (files, environment) become one file, and whatever files or
    folders they name (a certificate, a folder of wheels) are mounted under the same path.
    They are there during the build only and no part of the image.
    """
    told = _pip_config_list()
    sections = configparser.RawConfigParser()
    volumes = []
    for line in told.splitlines():
        key, _, quoted = line.partition("=")
        section, _, option = key.rpartition(".")
        value = str(ast.literal_eval(quoted))
        section = "global" if section == ":env:" else section
        if not sections.has_section(section):
            sections.add_section(section)
        sections.set(section, option, value)
        paths = [word for word in value.split() if word.startswith("/") and Path(word).exists()]
        volumes += [f"{path}:{path}:ro" for path in paths]
    settings = scratch / "pip.conf"
    with settings.open("w") as file:
        sections.write(file)
    return [f"{settings}:{PIP_CONF}:ro", *sorted(set(volumes))]


def _pip_config_list() -> str:
    for command in ([sys.executable, "-m", "pip"], ["pip3"], ["pip"]):
        try:
            return run([*command, "config", "list"])
        except (CommandFailed, FileNotFoundError):
            continue
    return ""  # a machine without pip has no settings for it: pip's own defaults then
