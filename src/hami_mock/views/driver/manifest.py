"""The list of what was made in a driver root: it stands in the root itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.kit.own_files import read_regular, write_whole
from hami_mock.views.driver.root import MANIFEST, Kind

OPTION = "--driver-root"
MOST_BYTES = 4 * 2**20


@dataclass
class Manifest:
    """What was made: paths with their kind, step and mark; and folders, each after its parent."""

    made: dict[str, dict[str, str]] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, root: Path) -> "Manifest | None":
        """Return what a root's manifest says; None: there is none. Raises UsageError."""
        try:
            data = json.loads(read_regular(root / MANIFEST, MOST_BYTES))
            made = {str(path): _entry(each) for path, each in data["made"].items()}
            folders = [str(path) for path in data["folders"]]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{OPTION}: {str(root / MANIFEST)!r} can't be read ({error}): it must list what "
                "is to be removed; remove the folder by hand"
            ) from error
        if odd := [path for path in (*made, *folders) if _leads_out(path)]:
            raise UsageError(
                f"{OPTION}: {str(root / MANIFEST)!r} names {odd[0]!r}, which isn't within the root"
            )
        return cls(made, folders)

    def write(self, root: Path) -> None:
        text = json.dumps({"made": self.made, "folders": self.folders}, indent=1)
        write_whole(root / MANIFEST, f"{text}\n".encode())


def _entry(given: Mapping[str, Any]) -> dict[str, str]:
    return {
        "kind": Kind(given["kind"]),
        "step": str(given["step"]),
        "mark": str(given["mark"]),
    }


def _leads_out(path: str) -> bool:
    parts = Path(path).parts
    return Path(path).is_absolute() or ".." in parts
