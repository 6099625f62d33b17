"""Reads recorded traces from files."""

from collections.abc import Sequence
from io import BytesIO, TextIOWrapper

from hami_mock.errors import UsageError
from hami_mock.kit.files import read_bytes
from hami_mock.node.load_trace import MOST_BYTES, Trace, merged, parse

_FLAG = "--load-trace"


def read(files: Sequence[str]) -> Trace:
    """Return what the files have together. Raises UsageError that names the file and the line."""
    return merged([_read(file) for file in files])


def _read(file: str) -> Trace:
    try:
        data = read_bytes(file, MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{_FLAG}: can't read {file!r}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{_FLAG}: can't read {file!r}: it is not a path") from error
    if len(data) > MOST_BYTES:
        most = f"{MOST_BYTES // 2**20} MiB"
        raise UsageError(f"{_FLAG}: {file!r} has more than {most}: shorten it, as with head")
    # Decoded as it is read: a text of all of it would take as much again.
    return parse(TextIOWrapper(BytesIO(data), "utf-8", newline=""), f"{_FLAG} {file}")
