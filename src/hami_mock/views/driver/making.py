"""Makes what is planned for a driver root, and removes exactly that again.

The root's manifest lists what was made. Whatever has become something else since, or was there
before, is somebody else's: it stays as it is, and a notice says so.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from hami_mock.errors import StartError, UsageError
from hami_mock.kit.folder_lock import FolderLock
from hami_mock.kit.own_files import read_regular
from hami_mock.vendors.driver import Driver, Machine
from hami_mock.views.driver.manifest import MOST_BYTES, OPTION, Manifest
from hami_mock.views.driver.root import (
    MANIFEST,
    SETTERS,
    InContainers,
    Item,
    Kind,
    Programs,
    Step,
    cdi,
    files,
    in_containers,
    mark_of,
    programs,
)

_ROOT = "."
_NO_NODE = "making device nodes needs the capability MKNOD: containers get /dev/null instead"
_MKNOD = 27
"""The capability's number."""
_IS = {
    Kind.FILE: stat.S_ISREG,
    Kind.STATE: stat.S_ISREG,
    Kind.LINK: stat.S_ISLNK,
    Kind.NODE: stat.S_ISCHR,
}


class What(StrEnum):
    """What was done, or would be."""

    MADE = "made"
    REPLACED = "replaced"
    KEPT = "kept"
    REMOVED = "removed"
    LEFT = "left alone"


@dataclass(frozen=True)
class Done:
    """What became of a path; `why` where it isn't plain."""

    path: str
    what: What
    why: str = ""


class Root:
    """A driver root on this machine."""

    def __init__(
        self, path: Path, make_state: Callable[[], bool] = lambda: False, *, dry: bool = False
    ) -> None:
        """Work in a folder; `make_state` makes the state file, and tells whether it is a new one.

        With `dry`, nothing is done but told: `make_state` must do nothing either.
        """
        self.path = path
        self._make_state = make_state
        self._dry = dry
        self._lock = FolderLock(path)
        self.release = self._lock.release
        self.has_nodes = True
        """Whether the character nodes are there; known after they were made."""

    def make(self, items: Sequence[Item], steps: Set[Step]) -> list[Done]:
        """Make items, and remove what these steps had made before and isn't wanted any more.

        Raises UsageError if the folder is somebody else's, StartError if it can't be written.
        """
        self.has_nodes = True
        with self._named_errors():
            manifest = self._claim()
            self._acquire()
            try:
                return self._make_all(items, steps, manifest)
            finally:
                # What was made before an error is in the list too.
                if not self._dry:
                    manifest.write(self.path)

    def _make_all(self, items: Sequence[Item], steps: Set[Step], manifest: Manifest) -> list[Done]:
        done = [self._make(item, manifest) for item in items]
        wanted = {item.path for item in items}
        stale = [path for path, entry in manifest.made.items() if entry["step"] in steps]
        done += [self._remove(path, manifest) for path in stale if path not in wanted]
        self._remove_folders(manifest, but=_ROOT)
        return done

    def remove(self) -> list[Done]:
        """Remove all that was ever made here. Raises UsageError if that isn't known."""
        with self._named_errors():
            manifest = Manifest.read(self.path)
            if manifest is None:
                return self._nothing_to_remove()
            self._acquire()
            done = [self._remove(path, manifest) for path in [*manifest.made]]
            if not self._dry and not manifest.made:
                (self.path / MANIFEST).unlink()
                self._remove_socket()
                self._remove_folders(manifest)
            elif not self._dry:
                self._remove_folders(manifest, but=_ROOT)
                manifest.write(self.path)
        return done

    def _nothing_to_remove(self) -> list[Done]:
        is_there = os.path.lexists(self.path)
        if is_there and (not self.path.is_dir() or self._strangers()):
            raise UsageError(
                f"{OPTION}: {str(self.path)!r} has no {MANIFEST}: nothing in it was made by "
                "hami-mock"
            )
        return []

    def _remove_socket(self) -> None:
        """Remove what an agent that was killed has left: it can't be there any more."""
        path = self.path / SETTERS
        if path.is_socket():
            path.unlink()
        with suppress(OSError):  # somebody else's files are in there
            path.parent.rmdir()

    def _claim(self) -> Manifest:
        """Return the manifest of a root of ours, or of one that is about to be."""
        manifest = Manifest.read(self.path)
        if manifest is not None:
            return manifest
        manifest = Manifest()
        if not self.path.is_dir():
            if os.path.lexists(self.path):
                raise UsageError(f"{OPTION}: {str(self.path)!r} is not a folder")
            if not self._dry:
                _make_folders(self.path)
            manifest.folders.append(_ROOT)
        elif found := self._strangers():
            raise UsageError(
                f"{OPTION}: {str(self.path)!r} has {found[0]!r} in it, and no {MANIFEST}: choose "
                "an empty folder"
            )
        return manifest

    def _strangers(self) -> list[str]:
        """Return what is in the folder and neither bare nor ours."""
        return [each.name for each in sorted(self.path.iterdir()) if not _is_bare(each)]

    def _make(self, item: Item, manifest: Manifest) -> Done:
        path, entry = self.path / item.path, manifest.made.get(item.path)
        found = _found(path, item.kind)
        if found == item.mark and item.kind is not Kind.STATE:
            if entry is None:
                return Done(item.path, What.KEPT, "it was there")
            return Done(item.path, What.KEPT)
        is_ours = entry is not None and found == entry["mark"]
        is_state = item.kind is Kind.STATE and found == ""
        if found is not None and not is_ours and not is_state:
            self.has_nodes &= item.kind is not Kind.NODE
            return Done(item.path, What.LEFT, "it isn't what hami-mock made: remove it by hand")
        what = What.REPLACED if found is not None else What.MADE
        if not self._dry:
            made = _make_folders(path.parent)
            manifest.folders += [str(each.relative_to(self.path)) for each in made]
        if item.kind is Kind.STATE:
            what = what if self._make_state() else What.KEPT
        elif not self._put(item, path):
            self.has_nodes = False
            return Done(item.path, What.LEFT, _NO_NODE)
        if not self._dry:
            manifest.made[item.path] = {"kind": item.kind, "step": item.step, "mark": item.mark}
        return Done(item.path, what)

    def _put(self, item: Item, path: Path) -> bool:
        """Make an item whole, under another name first; return False for a node that can't be."""
        if self._dry:
            return item.kind is not Kind.NODE or _may_make_nodes()
        new = path.with_name(f".{path.name}.new")
        new.unlink(missing_ok=True)
        match item.kind:
            case Kind.LINK:
                new.symlink_to(item.target)
            case Kind.NODE:
                try:
                    os.mknod(new, stat.S_IFCHR | item.mode, os.makedev(*item.device))
                except PermissionError:
                    return False
            case _:
                new.write_bytes(item.content)
        if item.kind is not Kind.LINK:
            new.chmod(item.mode)
        new.replace(path)
        return True

    def _remove(self, path: str, manifest: Manifest) -> Done:
        entry, place = manifest.made[path], self.path / path
        if _found(place, Kind(entry["kind"])) not in (entry["mark"], None):
            return Done(path, What.LEFT, "it is no longer what hami-mock made")
        if not self._dry:
            place.unlink(missing_ok=True)
            del manifest.made[path]
        return Done(path, What.REMOVED)

    def _remove_folders(self, manifest: Manifest, but: str = "") -> None:
        """Remove the folders that were made here, but for those that something is in."""
        for folder in [*reversed(manifest.folders)] if not self._dry else ():
            if folder == but:
                continue
            try:
                (self.path / folder).rmdir()
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EBUSY, errno.EEXIST):
                    continue
                raise
            manifest.folders.remove(folder)

    def _acquire(self) -> None:
        """Keep others out of the root, until `release`."""
        if self._dry:
            return
        try:
            self._lock.acquire()
        except BlockingIOError as error:
            owner = self._lock.owner()
            raise StartError(
                f"{OPTION}: another hami-mock{f' (process {owner})' if owner else ''} uses "
                f"{str(self.path)!r}: stop it, or choose another folder"
            ) from error

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or str(self.path)
            raise StartError(
                f"{OPTION}: {where!r} can't be written: {error.strerror or error}: run as root, "
                "or choose another folder"
            ) from error


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it that are missing, whatever the umask: clients are anybody.

    Return what was made, each after its parent.
    """
    missing: list[Path] = []
    while not folder.is_dir():
        missing.insert(0, folder)
        folder = folder.parent
    for each in missing:
        each.mkdir()
        each.chmod(0o755)
    return missing


def _found(path: Path, kind: Kind) -> str | None:
    """Return the mark of what is at a path; None if nothing is there."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not _IS[kind](found.st_mode):
        return "something else"
    match kind:
        case Kind.LINK:
            return str(path.readlink())
        case Kind.NODE:
            return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
        case Kind.STATE:
            return ""
        case Kind.FILE:
            return mark_of(read_regular(path, MOST_BYTES))


def _may_make_nodes() -> bool:
    """Tell whether this process has the capability for it; another limit may still hinder it."""
    status = Path("/proc/self/status").read_text()
    held = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return held is not None and bool(int(held[1], 16) >> _MKNOD & 1)


def _is_bare(path: Path) -> bool:
    """Tell whether a path is a folder with nothing in it, or one that something is mounted on."""
    if path.is_symlink() or not path.is_dir():
        return False
    return path.is_mount() or not any(path.iterdir())


def summary(done: Iterable[Done]) -> dict[str, int]:
    counts = dict.fromkeys(What, 0)
    for each in done:
        counts[each.what] += 1
    return {what: count for what, count in counts.items() if count}


def as_data(done: Iterable[Done]) -> list[Mapping[str, Any]]:
    return [
        {"path": each.path, "what": str(each.what)} | ({"why": each.why} if each.why else {})
        for each in done
    ]


def make_steps(
    root: Root,
    steps: Set[Step],
    driver: Driver,
    machine: Machine,
    compiled: Callable[[], Programs],
) -> tuple[list[Done], InContainers]:
    """Make some parts of a root; return what was done, and what containers get of it."""
    items = [*files(driver, machine)] if Step.FS in steps else []
    has_program = False
    if Step.DRIVER in steps:
        found = compiled()
        has_program = found.program is not None
        items += programs(driver, machine.version, found)
    done = root.make(items, steps - {Step.CDI})
    if Step.DRIVER in steps and not has_program:
        why = "it wasn't compiled; the libraries don't need it"
        done.append(Done(f"bin/{driver.program}", What.LEFT, why))
    within = in_containers(
        driver, machine, root.path, has_program=has_program, has_nodes=root.has_nodes
    )
    if Step.CDI in steps:
        done += root.make([cdi(driver, machine, within)], {Step.CDI})
    return done, within
