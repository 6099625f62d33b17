"""One parser for all commands: argparse, taught how we explain and how we complain."""

import argparse
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Self

from hami_mock.cli.commands import COMMANDS
from hami_mock.cli.output import FORMATS, say
from hami_mock.errors import UsageError
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.terminal import prose_width, wrap
from hami_mock.kit.values import Kind

Parsed = argparse.Namespace


class BareParser(argparse.ArgumentParser):
    """A parser that raises UsageError where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog.removeprefix('hami-mock ')}: {message}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # As all other values are refused, and alike with every version of Python.
        if action.choices is not None and value not in action.choices:
            allowed = ", ".join(map(str, action.choices))
            problem = f"{value!r} is not allowed: it must be one of {allowed}"
            raise argparse.ArgumentError(action, problem)

    def add(self, names: str, text: str, **how: Any) -> Self:
        """Add a flag, by all of its names, or a word."""
        self.add_argument(*names.split(), help=text, **how)
        return self

    def add_output(self) -> Self:
        how = {"choices": FORMATS, "default": FORMATS[0], "metavar": "|".join(FORMATS)}
        return self.add("-o --output", f"output format [{FORMATS[0]}]", **how)


class Parser(BareParser):
    """The parser of a command, with its help. `notes` are paragraphs, each one line."""

    def __init__(
        self,
        command: str,
        help: str = "",  # noqa: A002
        *,
        usage: str | None = "[FLAGS]",
        notes: str = "",
        examples: Iterable[str] = (),
    ) -> None:
        super().__init__(
            prog=f"hami-mock {command}",
            usage=None if usage is None else f"hami-mock {command} {usage}".rstrip(),
            description="\n\n".join(
                filter(None, (sentence(help or COMMANDS[command]), _listed(examples)))
            ),
            epilog=notes,
            formatter_class=HelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._positionals.title, self._optionals.title = "arguments", "flags"
        self.long_only: set[str] = set()
        """The groups that --help shows and -h doesn't."""
        self.of_others: Collection[str] = ()
        """Flags that other commands take, and for which this one has no use."""
        self.add("-h --help", "show this help and exit", action=_Help)

    def parse(self, arguments: Sequence[str]) -> Parsed:
        """Parse, and say of each flag that there is none what it may have been meant to be."""
        # argparse takes the value of `-v=--` for the end of the flags, and returns a list.
        if odd := [
            word.removesuffix("=--") for word in arguments if re.fullmatch("-[^=]*=--", word)
        ]:
            raise UsageError(f"{flag}: '--' is not allowed: it must be a value" for flag in odd)
        # Intermixed: `fail nvidia/0 --xid 79 nvidia/1` is as good as any other order.
        parsed, unknown = self.parse_known_intermixed_args(arguments)
        if unknown:
            # A word may be the value of the flag that isn't one.
            flags = [word for word in unknown if word.startswith("-")]
            raise UsageError([self._unknown(word) for word in flags or unknown])
        return parsed

    def _unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"{argument!r} is not expected here; see {self.prog} --help"
        flag = argument.partition("=")[0]
        if flag in self.of_others:
            return f"{flag}: {self.prog} doesn't use this flag: leave it out"
        hint = did_you_mean(flag, self._option_string_actions) or f"; see {self.prog} --help"
        return f"{flag}: there is no such flag{hint}"


def overview(
    command: str, summary: str, commands: Mapping[str, str], notes: str, examples: Iterable[str]
) -> str:
    """Return the help of a command that has commands of its own."""
    formatter = HelpFormatter("")
    formatter.add_text(f"usage: hami-mock {f'{command} ' * bool(command)}COMMAND [FLAGS]")
    formatter.add_text(sentence(summary))
    formatter.start_section("commands")
    for name, text in commands.items():
        formatter.add_argument(argparse.Action([name], name, nargs=0, help=text))
    formatter.end_section()
    formatter.add_text(_listed(examples))
    formatter.add_text(notes)
    return formatter.format_help()


def reads(kind: Kind[Any]) -> dict[str, Any]:
    """Return what an argument that has a value of that kind tells argparse."""

    def read(text: str) -> Any:
        try:
            return kind.read(text)
        except ValueError:
            problem = f"{text!r} is not allowed: it must be {kind.allowed}"
            raise argparse.ArgumentTypeError(problem) from None

    return {"type": read, "metavar": kind.metavar}


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('…') else '.'}"


def _listed(examples: Iterable[str]) -> str:
    # One that isn't a command of ours alone, such as a pipe, is there as a whole.
    lines = [f"  {'' if 'hami-mock ' in line else 'hami-mock '}{line}" for line in examples]
    return "\n".join(["examples:", *lines]) if lines else ""


class _Help(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(
        self, parser: argparse.ArgumentParser, _: Parsed, __: Any, flag: str | None = None
    ) -> None:
        assert isinstance(parser, Parser)
        if flag == "-h":
            groups = parser._action_groups
            parser._action_groups = [each for each in groups if each.title not in parser.long_only]
        say(parser.format_help(), end="")
        parser.exit()


class HelpFormatter(argparse.HelpFormatter):
    """As wide as the terminal, and paragraphs and examples keep their lines."""

    def __init__(self, prog: str) -> None:
        columns = prose_width()
        super().__init__(prog, max_help_position=min(42, columns * 2 // 5), width=columns)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, action.dest.upper())
        return f"{', '.join(action.option_strings)} {value}"

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = (line for paragraph in text.splitlines() for line in _paragraph(paragraph, width))
        return "\n".join(lines)


def _paragraph(text: str, columns: int) -> list[str]:
    if not text.startswith(" "):
        return wrap(text, columns)
    # An example is there to be copied: for the shell it stays one line.
    first, *others = wrap(text.strip(), columns - 8)
    return [" \\\n".join([f"  {first}", *(f"      {line}" for line in others)])]
