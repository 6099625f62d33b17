"""`hami-mock completion`: scripts that let a shell complete commands, flags and their values.

They are made from the parsers and stand on their own: to press TAB starts no program.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hami_mock.cli.commands import COMMANDS, load
from hami_mock.cli.ctl.commands import all_commands
from hami_mock.cli.ctl.parser import command_parser
from hami_mock.cli.output import say
from hami_mock.cli.parser import Parser
from hami_mock.node.fault import Call
from hami_mock.settings.options import OPTIONS
from hami_mock.vendors import VENDORS, catalog

SHELLS = ("bash", "zsh", "fish")
FILES = "@files"
"""Stands for the names of files, which the shell knows."""

_TARGETS = ("CARD", "RESOURCE", "TARGET")


@dataclass(frozen=True)
class Flag:
    """A flag; `values` are the words that may follow it: None if it takes none."""

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None


@dataclass(frozen=True)
class Context:
    """Where somebody is on the command line: the command so far, and what may come next."""

    command: str
    words: dict[str, str]
    flags: tuple[Flag, ...]


def parser() -> Parser:
    """Return the parser of the command."""
    parser = Parser(
        "completion",
        usage="|".join(SHELLS),
        notes="The examples load the script into the current shell. To load it into every shell, "
        "add the line to the shell's start-up file.",
        examples=(
            "source <(hami-mock completion bash)",
            "source <(hami-mock completion zsh)",
            "hami-mock completion fish | source",
        ),
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete in")
    return parser


def main(arguments: list[str]) -> int:
    """Print the script for a shell."""
    shell = parser().parse(arguments).shell
    found = list(contexts())
    say(_fish(found) if shell == "fish" else _bash_or_zsh(found, shell), end="")
    return 0


def contexts() -> Iterator[Context]:
    """Yield everything that can be completed."""
    run = _context("run", load("run").parser())
    # Without a command it is `run`.
    yield Context("", {**COMMANDS, "help": "explain a command"}, run.flags)
    yield Context("help", COMMANDS, ())
    for command in COMMANDS:
        if command != "ctl":
            yield _context(command, load(command).parser())
    verbs = all_commands()
    firsts = {name.split()[0]: verb.help for name, verb in verbs.items()}
    common = _context("ctl", command_parser("status", verbs["status"])).flags
    yield Context("ctl", firsts, common)
    inner = [name.split() for name in verbs if " " in name]
    for group in dict.fromkeys(first for first, _ in inner):
        seconds = {last: verbs[f"{group} {last}"].help for first, last in inner if first == group}
        yield Context(f"ctl {group}", seconds, common)
    for name, verb in verbs.items():
        yield _context(f"ctl {name}", command_parser(name, verb))


def _context(command: str, parser: Parser) -> Context:
    words: dict[str, str] = {}
    flags = []
    for action in parser._actions:
        if action.help is argparse.SUPPRESS:
            continue
        names = tuple(action.option_strings)
        if names:
            takes_none = action.nargs == 0
            help = re.sub(r"%%", "%", action.help or "")  # noqa: A001
            flags.append(Flag(names, help, None if takes_none else tuple(_values(action))))
        else:
            words |= dict.fromkeys(_values(action), "")
    return Context(command, words, tuple(flags))


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
    elif metavar in _TARGETS:
        yield from (*(vendor.prefix for vendor in VENDORS), "all")
    elif metavar == "OPTION=VALUE":
        yield from (f"{option.name}=" for option in OPTIONS)
    elif "|" in metavar:
        # Capitals stand for what everybody chooses for themselves.
        yield from (word for word in metavar.split("|") if not word.isupper())


_COMMON_SCRIPT = """\
# What may come next, a line each, after a command and the word before the cursor.
_hami_mock_next() {{
    case "$1:$2" in
{values}
    *) case "$3" in
        -*) case "$1" in
{flags}
            esac ;;
        *) case "$1" in
{words}
            esac ;;
        esac ;;
    esac
}}

# Which command these words are of; words that belong to none are skipped.
_hami_mock_command() {{
    local command="" word
    for word in "$@"; do
        case "$command $word" in
        {commands}) command="$command $word" ;;
        esac
    done
    printf '%s' "${{command# }}"
}}
"""

_BASH = """\
_hami_mock() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command found
    command=$(_hami_mock_command "${COMP_WORDS[@]:1:COMP_CWORD-1}")
    # bash takes --flag=value apart at the sign.
    if [[ $word == = ]]; then
        word=""
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    found=$(_hami_mock_next "$command" "$before" "$word")
    if [[ $found == @files ]]; then
        COMPREPLY=($(compgen -f -- "$word"))
        compopt -o filenames
        return
    fi
    COMPREPLY=($(compgen -W "${found/@files/}" -- "$word"))
    [[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace
    [[ $found == *@files* ]] && COMPREPLY+=($(compgen -f -- "$word"))
    return 0
}
complete -F _hami_mock hami-mock
"""

_ZSH = """\
_hami_mock() {
    local word=$PREFIX before=${words[CURRENT - 1]} command sign=""
    local -a found
    command=$(_hami_mock_command "${(@)words[2,CURRENT-1]}")
    if [[ $word == *=* ]]; then before=${word%%=*}; compset -P '*='; word=""; fi
    found=("${(@f)$(_hami_mock_next "$command" "$before" "$word")}")
    [[ -n ${found[(r)@files]} ]] && _files
    found=(${found:#@files})
    [[ ${found[1]} == *= ]] && sign=-S
    compadd ${sign:+-S ""} -- $found
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u; }
compdef _hami_mock hami-mock
"""


def _bash_or_zsh(found: list[Context], shell: str) -> str:
    flags = {c.command: [name for flag in c.flags for name in flag.names] for c in found}
    script = _COMMON_SCRIPT.format(
        values="\n".join(_value_cases(found)),
        flags=_cases(flags),
        words=_cases({context.command: list(context.words) for context in found}),
        commands=" | ".join(f'" {context.command}"' for context in found if context.command),
    )
    return script + "\n" + (_BASH if shell == "bash" else _ZSH)


def _value_cases(found: list[Context]) -> Iterator[str]:
    """Yield a case for each list of values, with all flags that take it."""
    patterns: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for context in found:
        for flag in context.flags:
            if flag.values is not None:
                patterns[flag.values] += [f'"{context.command}:{name}"' for name in flag.names]
    for values, where in patterns.items():
        yield f"    {' | '.join(where)}) {_printed(values)} ;;"


def _cases(lists: dict[str, list[str]]) -> str:
    return "\n".join(f'            "{key}") {_printed(words)} ;;' for key, words in lists.items())


def _printed(words: tuple[str, ...] | list[str]) -> str:
    return f"printf '%s\\n' {' '.join(words)}" if words else ":"


def _fish(found: list[Context]) -> str:
    rules: defaultdict[str, list[str]] = defaultdict(list)
    for context in found:
        for word, text in context.words.items():
            what = "-F" if word == FILES else f"-a {_quoted(word)} -d {_quoted(text)}"
            rules[what].append(context.command)
        for flag in context.flags:
            rules[_fish_flag(flag)].append(context.command)
    commands = " ".join(_quoted(context.command) for context in found if context.command)
    lines = [
        f"complete -c hami-mock -n {_quoted(f'__hami_mock_is {_list(where)}')} {rule}"
        for rule, where in rules.items()
    ]
    return "\n".join([_FISH.replace("COMMANDS", commands), *lines]) + "\n"


def _fish_flag(flag: Flag) -> str:
    names = (f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in flag.names)
    takes = ""
    if flag.values is not None:
        takes = "-r -F" if FILES in flag.values else f"-x -a {_quoted(' '.join(flag.values))}"
    return f"{' '.join(names)} {takes} -d {_quoted(flag.help)}"


def _list(commands: list[str]) -> str:
    return " ".join(f'"{command}"' for command in commands)


_FISH = """\
function __hami_mock_is
    set -l command
    for word in (commandline -opc)[2..]
        set -l longer (string trim "$command $word")
        contains -- $longer COMMANDS; and set command $longer
    end
    contains -- "$command" $argv
end
complete -c hami-mock -f"""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
