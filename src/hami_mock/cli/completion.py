"""`hami-mock completion`: scripts that let a shell complete commands, flags and their values.

At a TAB they ask `hami-mock __complete WORD …`, which answers from the parsers.
"""

import argparse
from collections.abc import Iterator, Sequence

from hami_mock.cli.commands import COMMANDS, load
from hami_mock.cli.ctl.commands import all_commands
from hami_mock.cli.ctl.parser import command_parser
from hami_mock.cli.output import say
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.node.fault import Call
from hami_mock.settings.options import OPTIONS
from hami_mock.vendors import VENDORS, catalog

FILES = "@files"
"""Stands for the names of files, which the shell knows."""

# What is found is a line each: a word, and a tab and what it means if that is known.
_BASH = """\
_hami_mock() {
    local IFS=$'\\n' found word=${COMP_WORDS[COMP_CWORD]#=}
    # Of --flag=value bash makes three words.
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    found=$(hami-mock __complete "${words[@]#=}" 2>/dev/null | cut -f 1)
    COMPREPLY=($(compgen -W "${found/@files/}" -- "$word"))
    [[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace
    if [[ $found == *@files* ]]; then
        COMPREPLY+=($(compgen -f -- "$word"))
        compopt -o filenames
    fi
}
complete -F _hami_mock hami-mock
"""
_ZSH = """\
_hami_mock() {
    local -a found
    found=("${(@f)$(hami-mock __complete "${(@)words[2,CURRENT]}" 2>/dev/null | cut -f 1)}")
    [[ $PREFIX == -*=* ]] && compset -P '*='
    [[ -n ${found[(r)@files]} ]] && _files
    compadd -- ${${found:#@files}:#*=}
    compadd -S "" -- ${(M)found:#*=}
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u; }
compdef _hami_mock hami-mock
"""
_FISH = """\
function __hami_mock
    set -l word (commandline -ct)
    set -l sign (string match -r -- '^-.*?=' $word)
    for found in (hami-mock __complete (commandline -opc)[2..] "$word" 2>/dev/null)
        if test $found = @files
            printf "$sign%s\\n" (__fish_complete_path (string replace -- "$sign" '' $word))
        else
            printf '%s%s\\n' "$sign" $found
        end
    end
end
complete -c hami-mock -f -a '(__hami_mock)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def parser() -> Parser:
    return Parser(
        "completion",
        usage="|".join(SCRIPTS),
        notes="The examples load the script into the current shell. To load it into every shell, "
        "add the line to the shell's start-up file.",
        examples=(
            "source <(hami-mock completion bash)",
            "source <(hami-mock completion zsh)",
            "hami-mock completion fish | source",
        ),
    ).add("shell", "the shell to complete in", choices=SCRIPTS, metavar="|".join(SCRIPTS))


def run(parsed: Parsed) -> None:
    say(SCRIPTS[parsed.shell], end="")


def complete(words: Sequence[str]) -> None:
    """Print what the last word may become, after the words before it."""
    *before, word = words or ("",)
    command, inner = "", _inner("")
    for each in before:
        if each in inner:
            command = f"{command} {each}".strip()
            inner = _inner(command)
    flag, sign, _ = word.partition("=")
    if not sign:
        flag = next(filter(None, reversed(before)), "")
    # The names of commands are known without their flags, which take longer to load.
    is_command = bool(inner) and not word.startswith("-") and not flag.startswith("-")
    actions = [] if is_command or command == "help" else _parser(command)._actions
    shown = [action for action in actions if action.help is not argparse.SUPPRESS]
    taking = [action for action in shown if flag in action.option_strings and action.nargs != 0]
    if taking:
        found = _values(taking[0])
    elif word.startswith("-"):
        found = (f"{name}\t{each.help}" for each in shown for name in each.option_strings)
    elif inner:
        found = (f"{name}\t{text}" for name, text in inner.items())
    else:
        places = (action for action in shown if not action.option_strings)
        found = (value for action in places for value in _values(action))
    say("\n".join(found).replace("%%", "%"))


def _inner(command: str) -> dict[str, str]:
    """Return the commands that may follow, and what they are for."""
    match command.split():
        case []:
            return {**COMMANDS, "help": "explain a command"}
        case ["help"]:
            return COMMANDS
        case ["fleet", *first]:
            from hami_mock.cli.fleet.dispatch import commands

            return {} if first else commands()
        case ["ctl", *first]:
            names = {tuple(name.split()): verb.help for name, verb in all_commands().items()}
            return {
                name[len(first)]: text
                for name, text in names.items()
                if name[: len(first)] == tuple(first) and len(name) > len(first)
            }
    return {}


def _parser(command: str) -> Parser:
    if command.startswith("ctl"):
        # Without more it takes what all of its commands take.
        verbs = all_commands()
        name = command.removeprefix("ctl").strip()
        return command_parser(name, verbs.get(name, verbs["status"]))
    if command.startswith("fleet "):
        from hami_mock.cli.fleet import dispatch

        of_fleet: Parser = dispatch.parser(command.removeprefix("fleet "))
        return of_fleet
    # Without a command it is `run`.
    parser: Parser = load(command or "run").parser()
    return parser


def _values(action: argparse.Action) -> Iterator[str]:
    """Yield the words that an argument may be, as far as they are known."""
    metavar = str(action.metavar or "")
    if action.choices:
        yield from map(str, action.choices)
    elif metavar in ("FILE", "DIR", "PATH"):
        yield FILES
    elif action.dest.endswith("-model"):
        (maker,) = (v.maker for v in VENDORS if action.dest == f"{v.prefix}-model")
        yield from catalog.models()[maker]
    elif metavar == "WORD":
        yield from (vendor.prefix for vendor in VENDORS)
        yield from dict.fromkeys(name for own in catalog.models().values() for name in own)
    elif metavar == "CALL":
        yield from Call
    elif metavar in ("VENDOR", "CARD", "RESOURCE", "TARGET"):
        yield from (*(vendor.prefix for vendor in VENDORS), "all")
    elif metavar == "OPTION=VALUE":
        yield from (f"{option.name}=" for option in OPTIONS)
    elif "|" in metavar:
        # Capitals stand for what everybody chooses for themselves.
        yield from (word for word in metavar.split("|") if not word.isupper())
