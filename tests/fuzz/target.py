"""What is fuzzed: a function of bytes, what it may raise, and how an input is judged."""

import logging
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hami_mock.errors import HamiMockError, UsageError

CASES = Path(__file__).parent / "cases"
_LONGEST_LINE = 10_000
"""Neither an error nor a line of the log may be as long as what it complains about."""


class Broken(Exception):
    """What a target says itself when something isn't as promised."""


@dataclass(frozen=True)
class Target:
    """A parser or a socket.

    `run` takes an input; `may_raise` is how it may say that the input is wrong. All else that it
    raises is a finding, as are too much time and too much memory.
    """

    name: str
    run: Callable[[bytes], object]
    may_raise: tuple[type[Exception], ...]
    seeds: Sequence[bytes]
    words: Sequence[bytes] = ()
    is_guided: bool = True
    """Whether it runs in this thread, where its lines can be seen."""


@cache
def folder() -> Path:
    """A folder of this process, which goes with it."""
    folder.keep = tempfile.TemporaryDirectory(prefix="hm-fuzz-")  # type: ignore[attr-defined]
    return Path(folder.keep.name)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Finding:
    """What is wrong with an input's outcome; findings of one name have one cause."""

    name: str
    text: str


class Logged(logging.Handler):
    """Looks at each line of the log: no error of the event loop or of a call may hide there."""

    def __init__(self) -> None:
        super().__init__()
        self.finding: Finding | None = None

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            if not _is_of_grpc(record.exc_info[1]):
                self.finding = _of_error(record.exc_info[1])
        elif record.levelno >= logging.ERROR:
            self.finding = Finding(f"log-{record.name}", text[:2000])
        elif len(text) > _LONGEST_LINE:
            self.finding = Finding(f"long-log-{record.name}", f"{len(text)} letters: {text[:200]}")

    def take(self) -> Finding | None:
        found, self.finding = self.finding, None
        return found


LOGGED = Logged()


def watch_log() -> None:
    """Let `judge` see the log, and nobody else."""
    root = logging.getLogger()
    root.handlers[:] = [LOGGED]
    root.setLevel(logging.INFO)


def judge(target: Target, data: bytes) -> Finding | None:
    """Run a target on an input; return what is wrong, or None."""
    try:
        target.run(data)
    except target.may_raise as error:
        return _of_refusal(error) or LOGGED.take()
    except Exception as error:
        return _of_error(error)
    return LOGGED.take()


def _of_refusal(error: Exception) -> Finding | None:
    """Look at an error of ours: what people are told must be short."""
    lines = error.problems if isinstance(error, UsageError) else (str(error),)
    longest = max(map(len, lines), default=0) if isinstance(error, HamiMockError) else 0
    if longest > _LONGEST_LINE:
        return Finding(f"long-message-{_where(error)}", f"a message of {longest} letters")
    return None


def _of_error(error: BaseException) -> Finding:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = "".join(traceback.format_exception_only(error)).strip()
    lines = "".join(traceback.format_tb(error.__traceback__)[-4:])
    name = str(error) if isinstance(error, Broken) else f"{type(error).__name__}-{_where(error)}"
    plain = "".join(c if (c.isascii() and c.isalnum()) or c in "-._" else "-" for c in name)
    return Finding(plain[:80], f"{text[:1000]}\n{lines}")


def _is_of_grpc(error: BaseException) -> bool:
    """Tell whether grpclib or h2 raised it: so they say that what came is no gRPC.

    They drop that connection, and that is all that is promised.
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    return any(f"/{name}/" in last.filename for name in ("grpclib", "h2", "hpack", "hyperframe"))


def _where(error: BaseException) -> str:
    """Return the last function of ours that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/hami_mock/" in frame.filename]
    return f"{Path(ours[-1].filename).stem}.{ours[-1].name}" if ours else "outside"
