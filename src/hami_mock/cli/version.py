"""`hami-mock version`."""

from hami_mock import __version__
from hami_mock.cli.output import say
from hami_mock.cli.parser import Parsed, Parser


def parser() -> Parser:
    return Parser("version", usage="")


def run(_: Parsed) -> None:
    say(f"hami-mock {__version__}")
