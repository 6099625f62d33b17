"""What the program prints: lines for people, or one document of JSON or YAML for scripts."""

import codecs
import io
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from hami_mock.errors import HamiMockError
from hami_mock.kit.terminal import is_unicode

FORMATS = ("table", "json", "yaml")

_PLAIN = {"…": "...", "→": "->", "█": "#", "░": ".", "■": "*", "°": " "}
"""What stands in for our own few characters where only ASCII can be printed."""


class ReaderGone(HamiMockError):
    """Whoever read our output has seen enough (`| head`)."""


class OutputFailed(HamiMockError):
    """Standard output is closed, or what it goes to is full."""


def show(data: Any, output: str, lines: Iterable[str], *, stream: bool = False) -> None:
    """Print data in one of FORMATS; `lines` are the table.

    Data is one document, indented. Of a `stream`, each item is one: in JSON a line.
    """
    documents = data if stream else [data]
    match output:
        case "json":
            indent = None if stream else 2
            for document in documents:
                say(json.dumps(document, indent=indent, ensure_ascii=not is_unicode()))
        case "yaml":
            import yaml  # it takes longer to load than all else

            for document in documents:
                text = yaml.safe_dump(
                    document, sort_keys=False, width=1000, allow_unicode=is_unicode()
                )
                say("---\n" * stream + text.rstrip())
        case _:
            say("\n".join(lines))


def say(text: str = "", end: str = "\n") -> None:
    """Print at once. Raises ReaderGone or OutputFailed if that can't be done."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError as error:
        _forget_output()
        raise ReaderGone from error
    except OSError as error:
        _forget_output()
        raise OutputFailed(f"can't write to standard output: {error.strerror}") from error


def prepare() -> None:
    """Make sure that there are standard streams, and that they can take all our characters."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # Or the next file or socket would become what others take for a standard stream.
            # Nobody can write to this one, which is what those who print should hear.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(each, "?") for each in text), error.end


def _forget_output() -> None:
    """Drop what is left to write: at its end Python would try again, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
