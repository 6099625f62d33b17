"""Running a program to its end, with an error that shows what it said."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from .errors import CommandFailed

DEFAULT_TIMEOUT_S = 120.0
# How Go compiles fastest: without what a debugger reads (a tenth less), and with less collecting of
# the compiler's garbage (a twentieth). The same for all, for then they share what is compiled.
GO_FLAGS = ("-trimpath", "-gcflags=all=-dwarf=false")
GO_SETTINGS = {"GOGC": "400"}


def run(
    argv: Sequence[str | Path],
    *,
    timeout: float = DEFAULT_TIMEOUT_S,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin_text: str | None = None,
    stdin_file: IO[bytes] | None = None,
) -> str:
    """Run `argv`; return its standard output.

    Raises CommandFailed with both outputs when it fails or takes longer than `timeout`.
    """
    words = [str(word) for word in argv]
    if stdin_file is not None:
        stdin: int | IO[bytes] = stdin_file
    else:
        stdin = subprocess.DEVNULL if stdin_text is None else subprocess.PIPE
    with subprocess.Popen(
        words,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if env is None else dict(env),
        cwd=cwd,
    ) as process:
        try:
            given = None if stdin_text is None else stdin_text.encode()
            out, err = process.communicate(given, timeout=timeout)
        except subprocess.TimeoutExpired as expired:
            process.kill()
            out, err = process.communicate()
            said = _text(out) + _text(err) + f"\n(stopped after {timeout:.0f} s)"
            raise CommandFailed(words, -1, said) from expired
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise CommandFailed(words, process.returncode, _text(out) + _text(err))
    return _text(out)


def alone(argv: Sequence[str]) -> list[str]:
    """`argv` in namespaces that take its processes and mounts along when it or we end.

    For programs that mount things and start others, and leave both behind when interrupted.
    The kernel tells `unshare` of our end, even by SIGKILL, and `unshare` tells its child.
    """
    namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig=KILL", "--", "unshare", *namespaces, "--", *argv]


def hearing_signals(argv: Sequence[str | Path]) -> list[str]:
    """`argv` with no signal ignored, whatever we were started with.

    In the background of a shell SIGINT is ignored, and so it would be by all that we start.
    """
    return ["env", "--default-signal", *map(str, argv)]


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode(errors="replace")
