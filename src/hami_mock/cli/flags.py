"""The options as flags, in whichever way a Go program's command line spells them.

HAMi's mock is a Go program: its manifests say `-resource-mem=x`, `--log_dir /tmp` or `-v=4`. Here
all of these become `--resource-mem=x`, `--log-dir /tmp` and `-v=4`.
"""

import argparse
import re
from collections.abc import Collection, Iterable
from typing import Any

from hami_mock.cli.parser import Parsed, Parser
from hami_mock.settings.options import BY_NAME, OPTIONS
from hami_mock.vendors import VENDORS

_FLAG = re.compile(r"\A--?(?P<name>[A-Za-z][\w-]*)(?P<value>=.*)?\Z", re.DOTALL)

# glog's flags, which HAMi's mock takes. They are accepted so that its manifests keep working; a
# container's log goes to stderr anyway.
GO_SWITCHES = ("debug", "logtostderr", "alsologtostderr")
GO_VALUES = ("v", "stderrthreshold", "log-dir", "vmodule", "log-backtrace-at")
_GO_TITLE = "Flags of HAMi's mock"

NOTES = """\
Every flag --some-name is also the environment variable HAMI_MOCK_SOME_NAME and the key some-name \
of the file given with --config. Flags override variables, and variables override the file. The \
file can say more: groups of different cards, NUMA nodes, NVLink, and sections for nodes by name.

Write a flag with one dash or two, with = or a space, with _ or -. `--help` lists all flags; `-h` \
leaves out those that few need."""
OF_CARDS = frozenset({
    "config", "node-name", "vendors", "source", "device-config-file", "log-level", "log-format",
    *(f"{each.prefix}-{what}" for each in VENDORS for what in ("cards", "model", "memory", "mig")),
})  # fmt: skip
"""The options that decide which cards a node has; and those of any command."""


def options_parser(
    command: str,
    *,
    notes: str = "",
    kind: type[Parser] = Parser,
    only: Collection[str] = BY_NAME,
    **texts: Any,
) -> Parser:
    """Return the parser of a command that takes the options, or `only` some of them.

    `texts` are more of what a parser is told for its help.
    """
    parser = kind(command, notes="\n\n".join(filter(None, (notes, NOTES))), **texts)
    groups: dict[str, argparse._ArgumentGroup] = {}
    parser.of_others = {f"--{name}" for name in BY_NAME if name not in only}
    for option in (option for option in OPTIONS if option.name in only):
        if option.section not in groups:
            groups[option.section] = parser.add_argument_group(option.section)
        default = option.shown_default and f" [{option.shown_default}]"
        texts = {option.name: f"{option.help}{default}".replace("%", "%%")}
        for alias in option.aliases:
            # An argument of its own, so that a message names the one that the user wrote.
            texts[alias] = f"the same as --{option.name}; the name that HAMi's mock uses"
        for name, text in texts.items():
            groups[option.section].add_argument(
                f"--{name}", metavar=option.kind.metavar, dest=name, help=text
            )
    parser.add_argument_group(
        _GO_TITLE,
        f"-{', -'.join((*GO_SWITCHES, *GO_VALUES))} are accepted, so that its manifests work; "
        "-debug and -v=4 mean --log-level debug.",
    )
    for name in GO_SWITCHES:
        parser.add_argument(f"--{name}", nargs="?", const="true", help=argparse.SUPPRESS)
    for name in GO_VALUES:
        dashes = "-" if len(name) == 1 else "--"
        parser.add_argument(f"{dashes}{name}", help=argparse.SUPPRESS)
    parser.long_only = {vendor.title for vendor in VENDORS[1:]} | {_GO_TITLE}
    return parser


def flag_values(parsed: Parsed) -> dict[str, str]:
    values = {name: value for name in BY_NAME if (value := getattr(parsed, name, None)) is not None}
    level = log_level_of_go_flags(parsed.debug, parsed.v)
    return {"log-level": level, **values} if level else values


def normalise(arguments: Iterable[str]) -> list[str]:
    """Return the arguments with every flag spelt with two dashes (a letter: one), no underscore."""
    return [_FLAG.sub(_spelt, argument) for argument in arguments]


def _spelt(flag: re.Match[str]) -> str:
    dashes = "-" if len(flag["name"]) == 1 else "--"
    return f"{dashes}{flag['name'].replace('_', '-')}{flag['value'] or ''}"


def log_level_of_go_flags(debug: str | None, verbosity: str | None) -> str | None:
    """Return the log level that -debug and -v ask for, or None if they ask for none."""
    if debug is not None and debug.lower() not in ("false", "f", "0"):
        return "debug"
    # glog's habit: from 4 on, messages are for the program's developers.
    return "debug" if re.fullmatch("0*([4-9]|[1-9][0-9]+)", verbosity or "") else None
