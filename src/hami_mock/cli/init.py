"""`hami-mock init`: a configuration file to begin with."""

from pathlib import Path

from hami_mock.cli.output import say
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.errors import UsageError
from hami_mock.settings.template import config_template


def parser() -> Parser:
    return (
        Parser("init", examples=("init -o hami-mock.yaml", "init | less"))
        .add("-o --output", "write to this file [stdout]", metavar="FILE")
        .add("--force", "overwrite the file if it exists", action="store_true")
    )


def run(parsed: Parsed) -> None:
    if parsed.output is None:
        say(config_template(), end="")
        return
    try:
        with Path(parsed.output).open("w" if parsed.force else "x", encoding="utf-8") as file:
            file.write(config_template())
    except FileExistsError as error:
        raise UsageError(
            f"init: {parsed.output!r} exists: choose another name, or overwrite it with --force"
        ) from error
    except OSError as error:
        raise UsageError(f"init: can't write {parsed.output!r}: {error.strerror}") from error
    say(f"wrote {parsed.output}; try `hami-mock plan --config {parsed.output}`")
