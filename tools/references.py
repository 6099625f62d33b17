"""Write docs/flags.md, schemas/ and the tables of docs/observability.md, or --check them.

They are made from the options, the verbs and the exporters.
"""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from metric_tables import with_tables

from hami_mock.cli.schema import SCHEMAS, schema_text
from hami_mock.settings.options import OPTIONS, Option

_OBSERVABILITY = Path("docs/observability.md")
_HEAD = """\
# Flags

<!-- Written by `make references` from src/hami_mock/settings/options.py. -->

Every option is a flag, an environment variable and a key of the YAML file named by `--config`:
`--nvidia-cards 8`, `HAMI_MOCK_NVIDIA_CARDS=8` and `nvidia-cards: 8` mean the same. In the file, a
mapping joins its keys with a dash, so you can also write `nvidia: {cards: 8}`. Flags override
variables, variables override the file, and `hami-mock ctl set` overrides them all until the agent
stops. Write a flag with one dash or two, with `=` or a space, with `_` or `-`.

The column "when" says when a running agent applies a change, made in the file or with `ctl set`:
`at once`; at the `next start` (`ctl set` refuses it); or never (`refused`), because the node would
be a different one.

`hami-mock init -o FILE` writes a file that lists every option in comments. `hami-mock schema
config` prints the JSON Schema of the file ([schemas/config.json](../schemas/config.json)), and
`hami-mock schema scenario` that of scenarios
([schemas/scenario.json](../schemas/scenario.json)). An editor with a YAML language server
completes and checks a file that begins with `# yaml-language-server: $schema=PATH`.

The file can also list cards of different models (`nvidia-groups`, and the same for each vendor)
and options for some nodes only (`nodes`). If it lists groups, a card count from a flag, a variable
or `ctl set` keeps the first cards listed, with their NUMA nodes and links. A count larger than the
groups is refused, and so is another model or memory size. A section under `nodes` may replace the
groups in the rest of the file.

"""


def flags_page() -> str:
    """Return docs/flags.md."""
    sections = groupby(OPTIONS, key=lambda option: option.section)
    tables = ("\n".join(_table(name, own)) for name, own in sections)
    return _HEAD + "\n\n".join(tables) + "\n"


def _table(section: str, options: Iterator[Option]) -> Iterator[str]:
    yield f"## {section}\n"
    yield "| flag | variable | key | default | when | |"
    yield "|---|---|---|---|---|---|"
    for option in options:
        names = "<br>".join(f"`--{name}`" for name in (option.name, *option.aliases))
        variables = "<br>".join(f"`{name}`" for name in option.variables)
        default = f"`{option.shown_default}`" if option.shown_default else ""
        when = "refused" if option.fixed else str(option.takes_effect).removeprefix("at the ")
        values = option.kind.metavar.replace("|", " \\| ")
        text = option.help.replace("|", "\\|")
        key = "" if option.name == "config" else f"`{option.name}`"
        yield f"| {names} {values} | {variables} | {key} | {default} | {when} | {text} |"


def main() -> None:
    """Write the files, or compare them."""
    files = {
        Path("docs/flags.md"): flags_page(),
        _OBSERVABILITY: with_tables(_OBSERVABILITY.read_text()),
        **{Path(f"schemas/{name}.json"): f"{schema_text(name)}\n" for name in SCHEMAS},
    }
    for path, text in files.items():
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path} is not what the code makes: run `make references`")


if __name__ == "__main__":
    main()
