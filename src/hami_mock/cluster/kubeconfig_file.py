"""The files of $KUBECONFIG as one, with values that know where they stand."""

import binascii
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hami_mock.cluster.access import AccessError
from hami_mock.kit import strict_yaml
from hami_mock.kit.files import MOST_BYTES, read_bytes
from hami_mock.kit.text import cut


@dataclass(frozen=True)
class Section:
    """A mapping in a file. Every reader raises AccessError with the place of what is wrong."""

    values: Mapping[str, Any]
    place: str
    folder: Path
    """What relative paths in it are relative to."""

    def text(self, key: str) -> str:
        """Return a text; "" if there is none."""
        found = self.values.get(key)
        if found is not None and not _is_text(found):
            raise AccessError(f"{self.place}.{key}: {cut(repr(found))} is not a string")
        return found or ""

    def needed(self, key: str) -> str:
        if not (found := self.text(key)):
            raise AccessError(f"{self.place}.{key} is missing")
        return found

    def is_set(self, key: str) -> bool:
        found = self.values.get(key)
        if not isinstance(found, bool | None):
            raise AccessError(f"{self.place}.{key}: {cut(repr(found))} is neither true nor false")
        return bool(found)

    def texts(self, key: str) -> list[str]:
        found = self._several(key)
        if not all(_is_text(each) for each in found):
            raise AccessError(f"{self.place}.{key}: not all are strings")
        return list(found)

    def sections(self, key: str) -> list["Section"]:
        return [
            self._section(each, f"{key}[{index}]") for index, each in enumerate(self._several(key))
        ]

    def section(self, key: str) -> "Section":
        return self._section(self.values.get(key), key)

    def _several(self, key: str) -> Sequence[Any]:
        found = self.values.get(key)
        if not isinstance(found, list | None):
            raise AccessError(f"{self.place}.{key}: {cut(repr(found))} is not a list")
        return found or []

    def _section(self, found: object, key: str) -> "Section":
        if not isinstance(found, dict | None):
            raise AccessError(f"{self.place}.{key}: {cut(repr(found))} is not a mapping")
        return Section(found or {}, f"{self.place}.{key}", self.folder)

    def path(self, key: str) -> Path | None:
        found = self.text(key)
        return self.folder / found if found else None

    def content(self, key: str) -> bytes:
        """Return what stands as `key`-data, or in the file that `key` names; b"" if neither."""
        if data := self.text(f"{key}-data"):
            try:
                return b64decode(data)
            except (binascii.Error, ValueError) as error:
                raise AccessError(f"{self.place}.{key}-data is not base64") from error
        return self.file(key)

    def file(self, key: str) -> bytes:
        """Return what is in the file that a key names; b"" if it names none."""
        if (path := self.path(key)) is None:
            return b""
        try:
            return read_bytes(str(path), MOST_BYTES)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise AccessError(f"{self.place}.{key}: {path} can't be read: {reason}") from error


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False  # it has half of a surrogate pair
    return True


class KubeconfigFile:
    """All files together: what the first of them says counts, as with kubectl."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Read the files; those that don't exist are left out. Raises AccessError if none does."""
        paths = list(paths)
        self._parts = [part for path in paths if (part := _read(path)) is not None]
        self.place = ":".join(map(str, paths))
        if not self._parts:
            raise AccessError(f"there is no {self.place}")

    @property
    def current_context(self) -> str:
        """The name of the context to use. Raises AccessError if there is none."""
        for part in self._parts:
            if name := part.text("current-context"):
                return name
        raise AccessError(f"{self.place}: current-context is missing: choose one with kubectl")

    def named(self, kind: str, name: str) -> Section:
        """Return what a name stands for; `kind` is "context", "cluster" or "user"."""
        for part in self._parts:
            for entry in part.sections(f"{kind}s"):
                if entry.text("name") == name:
                    return entry.section(kind)
        raise AccessError(f"{self.place}: there is no {kind} {cut(name)!r}")


def _read(path: Path) -> Section | None:
    try:
        text = read_bytes(str(path), MOST_BYTES).decode()
        found = strict_yaml.load_json_or_yaml(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AccessError(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise AccessError(f"{path} is not a kubeconfig: {error}") from error
    if not isinstance(found, dict):
        raise AccessError(f"{path} is not a kubeconfig")
    return Section(found, str(path), path.absolute().parent)
