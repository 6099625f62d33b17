"""Images without a builder: the pods' sandbox and a workload around Debian's static busybox, and
others that are a few files, alone or on the base image."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from .errors import HarnessError

PAUSE = "hami-mock.invalid/pause:e2e"
WORKLOAD = "hami-mock.invalid/workload:e2e"

WORKLOAD_SCRIPT = """\
#!/bin/sh
# Shows what the container was given, then waits to be stopped: at once, not after 30 s.
trap 'exit 0' TERM INT
env | sort
sleep infinity &
wait $!
"""
APPLETS = ("cat", "echo", "env", "false", "grep", "ls", "nc", "sh", "sleep", "sort", "true")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_small_images(archive: Path) -> None:
    """Write both images into one archive that `ctr images import` reads."""
    layer = _layer(_static_busybox())
    with tarfile.open(archive, "w") as tar:
        manifest = [
            _image(tar, PAUSE, ["/bin/sleep", "infinity"], {"layer.tar": layer}),
            _image(tar, WORKLOAD, ["/bin/workload"], {"layer.tar": layer}),
        ]
        add_file(tar, "layer.tar", layer)
        add_file(tar, "manifest.json", json.dumps(manifest).encode())


def write_image_of(files: Mapping[str, bytes], name: str, archive: Path, base: Path | None) -> None:
    """Write an image of these programs and files, laid over an image of one layer if one is given.

    What starts in it is for the pod to say.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            add_file(tar, path, content, mode=0o755)
    layers = {"files.tar": buffer.getvalue()}
    if base is not None:
        with tarfile.open(base) as tar:
            below = tar.extractfile("layer.tar")
            assert below is not None
            layers = {"layer.tar": below.read(), **layers}
    with tarfile.open(archive, "w") as tar:
        manifest = [_image(tar, name, [], layers)]
        for path, content in layers.items():
            add_file(tar, path, content)
        add_file(tar, "manifest.json", json.dumps(manifest).encode())


def _static_busybox() -> bytes:
    path = shutil.which("busybox")
    if path is None:
        raise HarnessError("busybox is missing: apt-get install busybox-static")
    return Path(path).read_bytes()


def _layer(busybox: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "tmp"):
            info = tarfile.TarInfo(folder)
            info.type = tarfile.DIRTYPE
            info.mode = 0o755
            tar.addfile(info)
        add_file(tar, "bin/busybox", busybox, mode=0o755)
        add_file(tar, "bin/workload", WORKLOAD_SCRIPT.encode(), mode=0o755)
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type = tarfile.SYMTYPE
            link.linkname = "busybox"
            tar.addfile(link)
    return buffer.getvalue()


def _image(
    tar: tarfile.TarFile, name: str, command: list[str], layers: Mapping[str, bytes]
) -> object:
    """Add the image's settings to the archive; return its entry in the archive's manifest."""
    settings = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin"]},
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers.values()],
        },
    }
    raw = json.dumps(settings).encode()
    file_name = f"{hashlib.sha256(raw).hexdigest()}.json"
    add_file(tar, file_name, raw)
    return {"Config": file_name, "RepoTags": [name], "Layers": [*layers]}


def add_file(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = mode
    tar.addfile(info, io.BytesIO(content))
