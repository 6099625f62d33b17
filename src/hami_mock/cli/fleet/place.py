"""How the commands of a fleet find its process."""

import os
import tempfile
from pathlib import Path
from typing import Any

from hami_mock.cli.ctl.client import ask
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.control.protocol import Request
from hami_mock.errors import StartError
from hami_mock.kit.own_socket import remove_stale

DEFAULT_NAME = "default"
SOCKET_VARIABLE = "HAMI_MOCK_FLEET_SOCKET"


def with_fleet(parser: Parser) -> Parser:
    """Add the flags that say which fleet is meant."""
    parser.add("--name", f"the fleet's name [{DEFAULT_NAME}]", metavar="NAME", default=DEFAULT_NAME)
    return parser.add(
        "--control-socket",
        f"the socket of the fleet's process, else ${SOCKET_VARIABLE} [{socket_of('NAME')}]",
        metavar="PATH",
    )


def socket_of(name: str) -> str:
    """Return where the process of a fleet listens: in a folder of the user who runs it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime or Path(tempfile.gettempdir()) / f"hami-mock-{os.geteuid()}")
    return str(folder / f"hami-mock-fleet-{name}.sock")


def chosen_socket(parsed: Parsed) -> str:
    """Return the socket that is meant."""
    return str(parsed.control_socket or os.environ.get(SOCKET_VARIABLE) or socket_of(parsed.name))


def has_process(parsed: Parsed) -> bool:
    """Tell whether the fleet's process runs here; what one that was killed has left is removed."""
    try:
        remove_stale(Path(chosen_socket(parsed)))
    except OSError:
        return True
    return False


def asked(parsed: Parsed, command: str, **arguments: Any) -> Any:
    """Return the answer of the fleet's process.

    Raises StartError if there is none, UsageError if that of another fleet listens there.
    """
    path = chosen_socket(parsed)
    if not has_process(parsed):
        raise StartError(
            f"no fleet {parsed.name!r} runs here (nothing listens on {path}): start it with "
            "`hami-mock fleet up FILE`, or name its socket with --control-socket"
        )
    (answer,) = ask(path, Request(command, {**arguments, "fleet": parsed.name}))
    return answer
