"""A base image for the project's Containerfile, made of Debian's packages where no image
registry can be reached."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import tarfile
import tempfile
from pathlib import Path

from .cache import appearing_whole, cache_folder, exclusive
from .commands import alone, run
from .errors import HarnessError
from .progress import Progress
from .small_images import ARCHITECTURES, add_file

SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
DEBOOTSTRAP_TIMEOUT_S = 900.0
# What apt keeps for itself: of no use in an image, and a fifth of its size.
NOT_PACKED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "dev")


def base_image(progress: Progress) -> Path:
    """The cached docker-archive; its name in it is `base_image_name()`."""
    target = cache_folder() / "images" / f"debian-{SUITE}-python.tar"
    label = f"make the base image, Debian {SUITE} with Python (once)"
    with exclusive("base-image"):
        if not target.exists():
            with progress.step(label), appearing_whole(target) as scratch:
                rootfs = scratch.parent / "rootfs"
                _bootstrap(rootfs)
                _pack(rootfs, scratch)
    return target


def base_image_name() -> str:
    return f"hami-mock.invalid/debian-python:{SUITE}"


def _bootstrap(rootfs: Path) -> None:
    include = f"--include={','.join(PACKAGES)}"
    command = ["debootstrap", "--variant=minbase", include, SUITE, str(rootfs), _own_mirror()]
    run(alone(command), timeout=DEBOOTSTRAP_TIMEOUT_S)


def _own_mirror() -> str:
    """The Debian mirror that this machine's own apt uses."""
    told = run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"])
    for line in told.splitlines():
        origin, label, uri = line.split("|", 2)
        if (origin, label) == ("Debian", "Debian"):
            return uri
    raise HarnessError(
        "apt on this machine has no Debian archive to make the base image from: add one to its "
        "sources and run apt-get update"
    )


def _pack(rootfs: Path, archive: Path) -> None:
    """Write the tree as a docker-archive of one layer."""

    def wanted(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        inside = any(info.name.startswith(f"{folder}/") for folder in NOT_PACKED)
        return None if inside else info

    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        layer = Path(scratch) / "layer.tar"
        with tarfile.open(layer, "w") as tar:
            for entry in sorted(rootfs.iterdir()):
                tar.add(entry, entry.name, filter=wanted)
        shutil.rmtree(rootfs)
        with layer.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        settings = {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["python3"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
        manifest = [
            {"Config": "image.json", "RepoTags": [base_image_name()], "Layers": ["layer.tar"]}
        ]
        with tarfile.open(archive, "w") as tar:
            add_file(tar, "image.json", json.dumps(settings).encode())
            add_file(tar, "manifest.json", json.dumps(manifest).encode())
            tar.add(layer, "layer.tar")
