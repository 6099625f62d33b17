"""The command line: parse, run, and turn errors into lines and exit codes."""

import sys
import traceback
from collections.abc import Callable, Sequence

from hami_mock.cli.flags import normalise
from hami_mock.errors import HamiMockError, UsageError

COMMANDS = {
    "run": "register the resources with the kubelet and keep them there (the default)",
    "plan": "show what would be registered, without registering it",
    "demo": "try it here: the agent against an embedded kubelet, no cluster needed",
    "ctl": "see and change an agent that runs: status, fail, recover, set, events, …",
    "doctor": "explain why HAMi or the kubelet would refuse a node or a pod",
    "scenario": "check a scenario and show its timeline, without playing it",
    "models": "list the card models",
    "version": "print the version",
}

_OVERVIEW = f"""\
usage: hami-mock [COMMAND] [FLAGS]

Make a Kubernetes node look as if it carried accelerators it doesn't have.

commands:
{chr(10).join(f"  {name:<9}{text}" for name, text in COMMANDS.items())}

`hami-mock COMMAND --help` explains a command and its flags.

examples:
  hami-mock demo
  hami-mock plan --nvidia-cards 8 --nvidia-model A100-SXM4-80GB --nvidia-memory-factor auto
  hami-mock run --config /etc/hami-mock/config.yaml --node-name $NODE_NAME
  hami-mock ctl fail nvidia/0 --xid 79 --for 2m
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code: 0, 1 (can't run), 2 (wrong input)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(words)
    except UsageError as error:
        return _fail(error.problems, 2)
    except HamiMockError as error:
        return _fail([str(error)], 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`). Python would complain at exit.
        sys.stderr.close()
        return 0
    except Exception as error:
        if any(word.endswith("debug") for word in words):
            traceback.print_exc()
        text = f"internal error, please report it: {type(error).__name__}: {error}"
        return _fail([f"{text} (--log-level debug says where)"], 1)


def _fail(lines: Sequence[str], code: int) -> int:
    for line in lines:
        print(f"hami-mock: {line}", file=sys.stderr)
    return code


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "-help", "help"):
        print(_OVERVIEW, end="")
        return 0
    if first in ("--version", "-version"):
        first, arguments = "version", ["version"]
    if not first or first.startswith("-"):
        first, arguments = "run", ["run", *arguments]
    if first not in COMMANDS:
        raise UsageError(f"{first!r} is no command: use one of {', '.join(COMMANDS)}")
    return _run(first, arguments[1:])


def _run(command: str, arguments: list[str]) -> int:
    """Run a command; `ctl`, which people call again and again, without loading the others."""
    if command == "ctl":
        from hami_mock.cli.ctl import client

        # What it takes are words for cards and resources: they are left as they are.
        return client.main(arguments)
    if command == "doctor":
        from hami_mock.doctor import command as doctor

        return doctor.main(arguments)
    from hami_mock.cli import commands

    function: Callable[[list[str]], int] = getattr(commands, command)
    return function(normalise(arguments))
