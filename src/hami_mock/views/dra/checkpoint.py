"""Prepared claims in a file: the kubelet doesn't ask again for what it has been given."""

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from hami_mock.kit.own_files import read_regular, write_whole
from hami_mock.kit.text import cut
from hami_mock.node.claims import ClaimedDevice, ClaimKey, PreparedClaim

NAME = "hami-mock-claims.json"
_VERSION = 1
_MOST_BYTES = 2**24

_log = logging.getLogger(__name__)


class Checkpoint:
    """A driver's file in its folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def read(self) -> tuple[PreparedClaim, ...]:
        """Return the claims in the file; none if there is none, or it can't be understood."""
        try:
            document = json.loads(read_regular(self._path, _MOST_BYTES))
            if document["version"] != _VERSION:
                raise ValueError(f"its version is {document['version']!r}")
            return tuple(
                PreparedClaim(
                    ClaimKey(*row["key"]),
                    row["uid"],
                    tuple(map(ClaimedDevice.read, row["devices"])),
                )
                for row in document["claims"]
            )
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            _log.warning("ignoring %s, so it isn't known who holds its claims: %s",
                         self._path, cut(str(error)))  # fmt: skip
            return ()

    def write(self, claims: Iterable[PreparedClaim]) -> None:
        """Replace the file. Raises OSError."""
        rows = [
            {
                "key": list(claim.key),
                "uid": claim.uid,
                "devices": [device.as_data() for device in claim.devices],
            }
            for claim in claims
        ]
        document = {"version": _VERSION, "claims": rows}
        write_whole(self._path, json.dumps(document).encode())
