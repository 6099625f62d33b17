"""What a command of `hami-mock ctl` is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hami_mock.cli.ctl import screens
from hami_mock.cli.parser import Parsed
from hami_mock.control.protocol import Request


@dataclass(frozen=True)
class Argument:
    """A flag (its name begins with a dash) or a positional word, as argparse wants it."""

    name: str
    how: Mapping[str, Any]


@dataclass(frozen=True)
class CtlCommand:
    """One command. `pick` takes from the answer what is shown."""

    help: str
    examples: tuple[str, ...]
    request: Callable[[Parsed], Request]
    arguments: tuple[Argument, ...] = ()
    screen: screens.Screen = screens.summary
    pick: Callable[[Any], Any] = lambda result: result
