"""Go-style command lines → ordinary ones. Pure.

HAMi's mock is a Go program: its manifests say `-resource-mem=x`, `--log_dir /tmp` or `-v=4`. Here
all of these become `--resource-mem=x`, `--log-dir /tmp` and `-v=4`.
"""

import re
from collections.abc import Iterable

_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w-]*)(?P<value>=.*)?", re.DOTALL)

# glog's flags, which HAMi's mock takes. They are accepted so that its manifests keep working; a
# container's log goes to stderr anyway.
GO_SWITCHES = ("debug", "logtostderr", "alsologtostderr")
GO_VALUES = ("v", "stderrthreshold", "log-dir", "vmodule", "log-backtrace-at")


def normalise(arguments: Iterable[str]) -> list[str]:
    """Return the arguments with every flag spelt with two dashes (a letter: one), no underscore."""
    return [_normalise(argument) for argument in arguments]


def _normalise(argument: str) -> str:
    flag = _FLAG.fullmatch(argument)
    if flag is None:
        return argument
    dashes = "-" if len(flag["name"]) == 1 else "--"
    return f"{dashes}{flag['name'].replace('_', '-')}{flag['value'] or ''}"


def log_level_of_go_flags(debug: str | None, verbosity: str | None) -> str | None:
    """Return the log level that -debug and -v ask for, or None if they ask for none."""
    if debug is not None and debug.lower() not in ("false", "f", "0"):
        return "debug"
    # glog's habit: from 4 on, messages are for the program's developers.
    if verbosity is not None and verbosity.isascii() and verbosity.isdigit():
        return "debug" if int(verbosity) >= 4 else None
    return None
