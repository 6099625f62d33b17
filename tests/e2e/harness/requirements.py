"""What the machine must have, and getting it where that is harmless."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from .binaries import available_binaries
from .cache import appearing_whole, cache_folder, exclusive
from .commands import run
from .errors import CommandFailed, RequirementsMissing
from .node import cni_plugin_folder
from .progress import Progress
from .versions import KubernetesVersion

INSTALL_TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Program:
    name: str
    package: str


PROGRAMS = (
    Program("containerd", "containerd"),
    Program("runc", "runc"),
    Program("etcd", "etcd-server"),
    Program("buildah", "buildah"),
    Program("debootstrap", "debootstrap"),
    Program("busybox", "busybox-static"),
    Program("ip", "iproute2"),
    Program("unshare", "util-linux"),
    Program("nsenter", "util-linux"),
    Program("setpriv", "util-linux"),
    Program("openssl", "openssl"),
)
CNI_PACKAGE = "containernetworking-plugins"
GO_WHEEL = Path(__file__).parents[3] / "requirements" / "go.txt"


def missing_requirements(version: KubernetesVersion) -> list[str]:
    """One sentence for each thing that is missing, with how to get it; empty when all is there."""
    sentences = []
    if os.geteuid() != 0:
        sentences.append("a cluster needs root: run it as root or with sudo")
    if available_binaries(version) is None and shutil.which("go") is None:
        sentences.append(
            f"Go is missing, which compiles Kubernetes {version}: install Go, or set "
            "KUBEBUILDER_ASSETS to a folder with the five Kubernetes programs"
        )
    sentences += [
        f"the program {program.name} is missing: apt-get install {program.package}"
        for program in PROGRAMS
        if _find(program.name) is None
    ]
    if cni_plugin_folder() is None:
        sentences.append(f"the CNI plugins are missing: apt-get install {CNI_PACKAGE}")
    return sentences


def ensure_requirements(version: KubernetesVersion, progress: Progress) -> None:
    """Install Debian packages that are missing where that is harmless.

    Raises RequirementsMissing with all the sentences when something is missing even so.
    """
    packages = _missing_packages()
    if packages and _may_install():
        with progress.step(f"install {', '.join(packages)}"):
            env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            run(["apt-get", "update"], env=env, timeout=INSTALL_TIMEOUT_S)
            install = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
            run(install, env=env, timeout=INSTALL_TIMEOUT_S)
    if available_binaries(version) is None and shutil.which("go") is None and os.geteuid() == 0:
        _get_go(version, progress)
    sentences = missing_requirements(version)
    if sentences:
        raise RequirementsMissing(sentences)


def _get_go(version: KubernetesVersion, progress: Progress) -> None:
    """Go from its wheel: into the cache, so that nothing of the machine is changed."""
    target = cache_folder() / "go"
    with exclusive("go"):
        if not target.exists():
            with progress.step("install Go"), appearing_whole(target) as scratch:
                pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
                words = ["--require-hashes", f"--requirement={GO_WHEEL}", f"--target={scratch}"]
                try:
                    run([*pip, *words], timeout=INSTALL_TIMEOUT_S)
                except CommandFailed as error:
                    raise RequirementsMissing(
                        [*missing_requirements(version), str(error)]
                    ) from error
    os.environ["PATH"] += f":{target}/go/bin"


def _missing_packages() -> list[str]:
    packages = {program.package for program in PROGRAMS if _find(program.name) is None}
    if cni_plugin_folder() is None:
        packages.add(CNI_PACKAGE)
    return sorted(packages)


def _may_install() -> bool:
    """Only as root, and only where no service manager would start what is installed.

    On a person's machine with systemd the packages of etcd and containerd start their services;
    that is for that person to decide.
    """
    systemd_runs = Path("/run/systemd/system").exists()
    return os.geteuid() == 0 and shutil.which("apt-get") is not None and not systemd_runs


def _find(program: str) -> str | None:
    # An ordinary user's PATH often lacks the folders of the system's own programs.
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    return shutil.which(program, path=path)
