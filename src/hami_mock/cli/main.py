"""The command line: find the command, run it, and turn errors into lines and exit codes."""

import os
import signal
import sys
import traceback
from collections.abc import Sequence

from hami_mock.cli.commands import COMMANDS, HELP, run
from hami_mock.cli.output import ReaderGone, prepare, say
from hami_mock.errors import HamiMockError, UsageError
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.text import cut

_LONGEST = 2000
_LEVEL = "HAMI_MOCK_LOG_LEVEL"
_SUMMARY = "make a Kubernetes node look as if it carried accelerators it doesn't have"
_EXAMPLES = (
    "demo",
    "plan --nvidia-cards 8 --nvidia-model A100-SXM4-80GB",
    "run --config /etc/hami-mock/config.yaml --node-name $NODE_NAME",
    "ctl fail nvidia/0 --xid 79 --for 2m",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code: 0, 1 (can't run), 2 (wrong input)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        prepare()
        return _dispatch(words)
    except ReaderGone:
        return 0
    except UsageError as error:
        return _fail(error.problems, 2)
    except HamiMockError as error:
        return _fail([str(error)], 1)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        # Not every command has the flag, but each heeds its variable here.
        if os.environ.get(_LEVEL) == "debug" or any(word.endswith("debug") for word in words):
            traceback.print_exc()
        text = f"internal error, please report it: {type(error).__name__}: {error}"
        return _fail([f"{text} ({_LEVEL}=debug shows where)"], 1)


def _fail(lines: Sequence[str], code: int) -> int:
    for line in lines:
        # One line, whatever somebody wrote that it repeats.
        print(f"hami-mock: {cut(line, _LONGEST)}", file=sys.stderr)
    return code


def _dispatch(words: list[str]) -> int:
    match words:
        case []:
            # A person wants to know what there is; a container has its settings in variables.
            return _help() if sys.stdout.isatty() else _run("run", [])
        case ["__complete", *rest]:
            from hami_mock.cli.completion import complete

            complete(rest)
            return 0
        case [first, *rest] if first in HELP:
            wanted = [word for word in rest if word not in HELP]
            return _dispatch([*wanted, "--help"]) if rest else _help()
        case ["--version" | "-version", *rest]:
            return _run("version", rest)
        case [first, *_] if first.startswith("-"):
            return _run("run", words)
        case [command, *rest]:
            return _run(command, rest)
    raise AssertionError(words)  # pragma: no cover - all lists have been matched


def _run(command: str, arguments: list[str]) -> int:
    if command not in COMMANDS:
        hint = did_you_mean(command, COMMANDS) or f": use one of {', '.join(COMMANDS)}"
        raise UsageError(f"{command!r} is not a command{hint}")
    if command == "run":
        # A reload that is asked for too early: what is read at the start is the newest anyway.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    if command != "ctl":
        # What ctl takes are words for cards and resources: they are left as they are.
        from hami_mock.cli.flags import normalise

        arguments = normalise(arguments)
    return run(command, arguments)


def _help() -> int:
    from hami_mock.cli.parser import overview

    notes = "`hami-mock COMMAND --help` explains a command and lists its flags; -h lists fewer."
    say(overview("", _SUMMARY, COMMANDS, notes, _EXAMPLES), end="")
    return 0
