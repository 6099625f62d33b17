"""Where the programs of a control plane are: in a folder of the user's, the cache, or the PATH."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from hami_mock.errors import StartError

_KUBERNETES = "kubernetes"
_PREPARE = "`make e2e-prepare` in hami-mock's sources compiles it"
_SOURCES = {
    "etcd": "install it (Debian: apt-get install etcd-server)",
    "setpriv": "install it (Debian: apt-get install util-linux)",
    "kwok": f"{_PREPARE}, or get KWOK 0.8 or newer from its releases",
}


@dataclass(frozen=True)
class Programs:
    """The programs that a sandbox runs."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kwok: Path
    setpriv: Path


def cache_folder() -> Path:
    """Return ${E2E_CACHE:-${XDG_CACHE_HOME:-~/.cache}/hami-mock}, which may not be there yet."""
    own = os.environ.get("E2E_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME")
    parent = Path(shared) if shared else Path.home() / ".cache"
    return Path(own) if own else parent / "hami-mock"


def releases() -> dict[str, Path]:
    """Return the releases of Kubernetes that the cache has, the newest last."""
    found = [path for path in (cache_folder() / _KUBERNETES).glob("[0-9]*") if path.is_dir()]
    return {path.name: path for path in sorted(found, key=lambda path: _numbers(path.name))}


def find_programs(folder: str = "", release: str = "") -> Programs:
    """Return where each program is.

    `folder` comes first, then $KUBEBUILDER_ASSETS, the cache and $PATH. `release` says which of the
    cache's: 1.35 or 1.35.8; the newest without it. Raises StartError, which says how to get what is
    missing.
    """
    folders = _folders(folder, release)
    names = {field.name: field.name.replace("_", "-") for field in fields(Programs)}
    found = {key: _find(name, folders) for key, name in names.items()}
    if missing := [names[key] for key, path in found.items() if path is None]:
        looked = ", ".join(map(str, folders)) or "the cache"
        hints = "; ".join(f"{name}: {_SOURCES.get(name, _PREPARE)}" for name in missing)
        raise StartError(
            f"a control plane needs programs that are neither in {looked} nor in $PATH. {hints}. "
            "Or name a folder that has them with $KUBEBUILDER_ASSETS"
        )
    return Programs(**{key: path for key, path in found.items() if path is not None})


def _folders(folder: str, release: str) -> list[Path]:
    if folder and not Path(folder).is_dir():
        raise StartError(f"--programs: {folder!r} is not a folder")
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    first = [Path(given) for given in (folder, assets) if given]
    cached = _chosen(release, releases())
    kwok = sorted((cache_folder() / "kwok").glob("v*"), key=lambda path: _numbers(path.name))[-1:]
    return [*first, *cached, *kwok]


def _chosen(release: str, cached: Mapping[str, Path]) -> list[Path]:
    wanted = _numbers(release)
    fitting = [path for name, path in cached.items() if _numbers(name)[: len(wanted)] == wanted]
    if release and not fitting:
        raise StartError(
            f"Kubernetes {release!r} is not in {cache_folder()}, which has "
            f"{', '.join(cached) or 'none'}: compile it with `make e2e-prepare`"
        )
    return fitting[-1:]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.removeprefix("v").split(".") if part.isdecimal())


def _find(name: str, folders: list[Path]) -> Path | None:
    # The PATH of an ordinary user often lacks the folders of the system's own programs.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
    places = (*map(str, folders), *path.split(":"))
    found = shutil.which(name, path=":".join(places))
    return Path(found).absolute() if found else None
