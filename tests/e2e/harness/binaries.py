"""The Kubernetes programs: the user's own, the cached ones, or compiled once into the cache."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from .cache import appearing_whole, cache_folder, exclusive
from .commands import GO_FLAGS, GO_SETTINGS, alone, run
from .errors import CommandFailed, HarnessError
from .progress import Progress, Step
from .versions import KubernetesVersion, parse_version

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
MODULE = "k8s.io/kubernetes"
STAGING_PREFIX = "./staging/src/"
DOWNLOAD_TIMEOUT_S = 900.0


def own_binaries() -> Path | None:
    """The folder of KUBEBUILDER_ASSETS, when it is set and holds every program."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given and _complete(Path(given)):
        return Path(given)
    return None


def version_of(binaries: Path) -> KubernetesVersion:
    """What they say they are: a user's own may be of another release than the one asked for."""
    told = run([binaries / "kubelet", "--version"]).split()[-1]
    return parse_version(told.partition("-")[0].partition("+")[0])


def available_binaries(version: KubernetesVersion) -> Path | None:
    """Where the programs are now, without compiling anything."""
    own = own_binaries()
    if own is not None:
        return own
    cached = _cached(version)
    return cached if _complete(cached) else None


def kubernetes_binaries(version: KubernetesVersion, progress: Progress) -> Path:
    """The folder with the five programs; compiles them when they are nowhere yet."""
    found = available_binaries(version)
    if found is not None:
        return found
    target = _cached(version)
    with exclusive(f"kubernetes-{version}"):
        if _complete(target):  # another run compiled it while this one waited for the lock
            return target
        with appearing_whole(target) as scratch:
            scratch.mkdir()
            module = scratch.parent / "module"
            module.mkdir()
            with progress.step(f"fetch the sources of Kubernetes {version}"):
                _write_module(module, version)
            with progress.step(f"compile Kubernetes {version} (once, takes minutes)") as step:
                _compile(module, version, scratch, step)
    return target


def _cached(version: KubernetesVersion) -> Path:
    return cache_folder() / "kubernetes" / str(version)


def _complete(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in PROGRAMS)


def _write_module(folder: Path, version: KubernetesVersion) -> None:
    """A module that requires Kubernetes, with its staging modules at their published releases.

    Kubernetes' own go.mod requires them at v0.0.0 and replaces them by folders beside it, which
    Go honours only in the main module. So the main module is ours, and it repeats the replaces.
    """
    told = json.loads(
        run(
            ["go", "mod", "download", "-json", f"{MODULE}@{version.tag}"],
            cwd=folder,
            timeout=DOWNLOAD_TIMEOUT_S,
        )
    )
    upstream = json.loads(run(["go", "mod", "edit", "-json", told["GoMod"]], cwd=folder))
    lines = [
        "module kubernetes.invalid/e2e",
        f"go {upstream['Go']}",
        # The runtime defaults that the release was tested with.
        *(f"godebug {item['Key']}={item['Value']}" for item in upstream.get("Godebug") or ()),
        f"require {MODULE} {version.tag}",
    ]
    for replace in upstream.get("Replace") or ():
        if replace["New"]["Path"].startswith(STAGING_PREFIX):
            name = replace["Old"]["Path"]
            lines.append(f"replace {name} => {name} {version.staging_tag}")
    (folder / "go.mod").write_text("\n".join(lines) + "\n")


def _compile(module: Path, version: KubernetesVersion, output: Path, step: Step) -> None:
    """One `go build` for all five, so that both the cores and the shared packages are used."""
    version_package = "k8s.io/component-base/version"
    flags = " ".join(
        [
            "-s -w",
            f"-X {version_package}.gitVersion={version.tag}",
            f"-X {version_package}.gitMajor=1",
            f"-X {version_package}.gitMinor={version.minor}",
        ]
    )
    # Minutes of full load on every core: whoever sits at the machine goes first.
    argv = ["nice", "-n", "10", "go", "build", "-mod=mod", *GO_FLAGS, "-v"]
    argv += ["-ldflags", flags, "-o", f"{output}/"]
    argv += [f"{MODULE}/cmd/{program}" for program in PROGRAMS]
    with subprocess.Popen(
        alone(argv),
        cwd=module,
        # Its own temporary files go where the next run finds them, should this one be killed.
        env={**os.environ, "CGO_ENABLED": "0", "GOTMPDIR": str(module), **GO_SETTINGS},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        said: list[str] = []
        assert process.stderr is not None
        for line in process.stderr:  # -v: one line for each package
            said.append(line)
            step.detail = f"{len(said)} packages"
        code = process.wait()
    if code != 0:
        raise CommandFailed(["go", "build"], code, "".join(said))
    if not _complete(output):
        raise HarnessError(f"`go build` did not write all of {', '.join(PROGRAMS)}")
