"""argparse, taught our options and our way to say what is wrong."""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from hami_mock.cli.flags import GO_SWITCHES, GO_VALUES, log_level_of_go_flags
from hami_mock.errors import UsageError
from hami_mock.kit.similar import did_you_mean
from hami_mock.settings.options import BY_NAME, OPTIONS

EPILOG = """\
Every flag --some-name is also the environment variable HAMI_MOCK_SOME_NAME and the key some-name of
the file given with --config; a flag beats a variable beats the file. One dash or two, = or a space,
_ or - are all the same. The file can say more: groups of different cards, NUMA nodes, NVLink, and
sections for nodes by name (see the README).
"""


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError where argparse would print and exit."""

    def __init__(self, command: str, description: str, *, with_options: bool) -> None:
        super().__init__(
            prog=f"hami-mock {command}",
            usage=f"hami-mock {command} [FLAGS]",
            description=f"{description[0].upper()}{description[1:]}.",
            epilog=EPILOG if with_options else None,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )
        if with_options:
            self._add_options()

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(message)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse, and say of each flag that there is none what it may have been meant to be."""
        parsed, unknown = self.parse_known_args(arguments)
        if unknown:
            raise UsageError([self._unknown(argument) for argument in unknown])
        return parsed

    def _unknown(self, argument: str) -> str:
        flag = argument.partition("=")[0]
        if not flag.startswith("-"):
            return f"{argument!r} belongs to no flag; see {self.prog} --help"
        hint = did_you_mean(flag, self._option_string_actions) or f"; see {self.prog} --help"
        return f"{flag}: there is no such flag{hint}"

    def _add_options(self) -> None:
        groups: dict[str, argparse._ArgumentGroup] = {}
        for option in OPTIONS:
            if option.section not in groups:
                groups[option.section] = self.add_argument_group(option.section)
            default = option.shown_default and f" [{option.shown_default}]"
            groups[option.section].add_argument(
                f"--{option.name}",
                metavar=option.kind.metavar,
                dest=option.name,
                help=f"{option.help}{default}".replace("%", "%%"),
            )
            for alias in option.aliases:
                # An argument of its own, so that a message names the one that the user wrote.
                groups[option.section].add_argument(
                    f"--{alias}",
                    metavar=option.kind.metavar,
                    dest=alias,
                    help="the same, as HAMi's mock calls it",
                )
        self.add_argument_group(
            "As HAMi's mock has them",
            f"-{' -'.join((*GO_SWITCHES, *GO_VALUES))}\nare accepted so that its manifests work; "
            "-debug and -v=4 are --log-level debug.",
        )
        for name in GO_SWITCHES:
            self.add_argument(f"--{name}", nargs="?", const="true", help=argparse.SUPPRESS)
        for name in GO_VALUES:
            dashes = "-" if len(name) == 1 else "--"
            self.add_argument(f"{dashes}{name}", help=argparse.SUPPRESS)


def flag_values(parsed: argparse.Namespace) -> dict[str, str]:
    """Return the options that flags gave, by name."""
    values = {name: value for name in BY_NAME if (value := getattr(parsed, name, None)) is not None}
    level = log_level_of_go_flags(parsed.debug, parsed.v)
    return {"log-level": level, **values} if level else values


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Leaves the epilog as it is and gives long flags room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=42, width=100)

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap  # only for --help

        # argparse would break a path or a flag in two at its dashes.
        return textwrap.wrap(text, width, break_on_hyphens=False)
