"""Write docs/flags.md and schemas/ from the options and verbs, or with --check compare them."""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from hami_mock.cli.schema import SCHEMAS, schema_text
from hami_mock.settings.options import OPTIONS, Option

_HEAD = """\
# Flags

<!-- Written by `make references` from src/hami_mock/settings/options.py. -->

Every option is a flag, an environment variable and a key of the YAML file given with `--config`:
`--nvidia-cards 8` is `HAMI_MOCK_NVIDIA_CARDS=8` and `nvidia-cards: 8`. In the file, a mapping
joins its keys with a dash: `nvidia: {cards: 8}` says the same. A flag beats a variable beats the
file, and `hami-mock ctl set` beats them all until the agent ends. One dash or two, `=` or a
space, `_` or `-` are all the same.

"When" tells what a running agent does with a change, in the file or by `ctl set`: it takes effect
at once, or at the next start (`ctl set` refuses it), or it is refused, because it would be
another node.

`hami-mock init -o FILE` writes a file with every option as a comment. `hami-mock schema config`
prints a JSON Schema of the file ([schemas/config.json](../schemas/config.json)), so that editors
complete it.

The file can also list cards of different models (`nvidia-groups`, and so for each vendor) and
options for some nodes (`nodes`). Where it lists groups, a flag, a variable or `ctl set` for the
number of cards takes the first ones of them, with their NUMA nodes and links; more than there
are, another model or other memory is refused. A section under `nodes` may replace the groups of
the rest of the file.

"""


def flags_page() -> str:
    """Return docs/flags.md."""
    sections = groupby(OPTIONS, key=lambda option: option.section)
    tables = ("\n".join(_table(name, own)) for name, own in sections)
    return _HEAD + "\n\n".join(tables) + "\n"


def _table(section: str, options: Iterator[Option]) -> Iterator[str]:
    yield f"## {section}\n"
    yield "| flag | variable | default | when | |"
    yield "|---|---|---|---|---|"
    for option in options:
        names = "<br>".join(f"`--{name}`" for name in (option.name, *option.aliases))
        variables = "<br>".join(f"`{name}`" for name in option.variables)
        default = f"`{option.shown_default}`" if option.shown_default else ""
        when = "refused" if option.fixed else str(option.takes_effect).removeprefix("at the ")
        values = option.kind.metavar.replace("|", " \\| ")
        text = option.help.replace("|", "\\|")
        yield f"| {names} {values} | {variables} | {default} | {when} | {text} |"


def main() -> None:
    """Write the files, or compare them."""
    files = {
        Path("docs/flags.md"): flags_page(),
        **{Path(f"schemas/{name}.json"): f"{schema_text(name)}\n" for name in SCHEMAS},
    }
    for path, text in files.items():
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path} is not what the options make: run `make references`")


if __name__ == "__main__":
    main()
