"""The words after `hami-mock fleet` → the command they name, run."""

from importlib import import_module
from typing import Any

from hami_mock.cli.commands import COMMANDS as OUTER
from hami_mock.cli.commands import HELP
from hami_mock.cli.fleet import COMMANDS
from hami_mock.cli.output import say
from hami_mock.errors import UsageError
from hami_mock.fleet.kinds import FLEET_VERBS
from hami_mock.kit.similar import did_you_mean

_EXAMPLES = (
    "fleet up fleet.yaml",
    "fleet status",
    "fleet fail rack=a100-r3 --xid 79 --for 5m",
    "fleet scale a100=1200",
    "fleet down",
)
_NOTES = (
    "KWOK keeps the nodes ready and their pods running; this puts cards on them. $KUBECONFIG says "
    "which cluster, and docs/fleet.md how to have one.\n\n"
    "`hami-mock fleet COMMAND --help` explains a command in detail."
)

# `fleet up` and `fleet down` are the fleet's own.
_RENAMED = {"up": "plugin-up", "down": "plugin-down"}
VERB_COMMANDS = {_RENAMED.get(name, name): verb for name, verb in FLEET_VERBS.items()}


def main(words: list[str]) -> int:
    """Run a command of the fleet; return its exit code. Raises an error of ours."""
    if not words or words[0] in HELP:
        wanted = [word for word in words[1:] if word not in HELP]
        if not wanted:
            say(overview(), end="")
            return 0
        words = [*wanted, "--help"]
    name, *rest = words
    if name not in commands():
        hint = did_you_mean(name, commands()) or f": use one of {', '.join(commands())}"
        raise UsageError(f"fleet: {name!r} is not a command{hint}")
    parsed, run = parser(name).parse(rest), runner(name)
    return run(parsed) or 0


def commands() -> dict[str, str]:
    """Return what there is, and what each is for."""
    return {**COMMANDS, **{name: verb.help for name, verb in VERB_COMMANDS.items()}}


def parser(name: str) -> Any:
    if name in COMMANDS:
        return _module(name).parser()
    from hami_mock.cli.fleet.verbs import parser as of_verb

    return of_verb(name, VERB_COMMANDS[name])


def runner(name: str) -> Any:
    if name in COMMANDS:
        return _module(name).run
    from hami_mock.cli.fleet.verbs import run

    return run


def overview() -> str:
    from hami_mock.cli.parser import overview as shown

    return shown("fleet", OUTER["fleet"], commands(), _NOTES, _EXAMPLES)


def _module(name: str) -> Any:
    return import_module(f"hami_mock.cli.fleet.{name.replace('-', '_')}")
