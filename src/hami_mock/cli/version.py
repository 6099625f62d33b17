"""`hami-mock version`."""

from hami_mock import __version__
from hami_mock.cli.output import say
from hami_mock.cli.parser import Parser


def parser() -> Parser:
    """Return the parser of the command."""
    return Parser("version", usage="")


def main(arguments: list[str]) -> int:
    """Print the version."""
    parser().parse(arguments)
    say(f"hami-mock {__version__}")
    return 0
