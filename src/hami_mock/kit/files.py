"""Files that people name."""

from pathlib import Path

from hami_mock.errors import UsageError


def read_text(option: str, path: str) -> str:
    """Return the text of a file that an option names. Raises UsageError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"--{option}: can't read {path!r}: {reason}") from error
