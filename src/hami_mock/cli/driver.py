"""`hami-mock driver`: a driver root, made and removed, for an agent that runs or without one."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from hami_mock.cli.flags import OF_AGENTS, flag_values, options_parser
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.kit import logs
from hami_mock.kit.terminal import Style, paint, table
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings, load
from hami_mock.sources import planning
from hami_mock.views.driver import compiled
from hami_mock.views.driver.cards import DriverCards
from hami_mock.views.driver.making import Done, Root, What, as_data, make_steps, summary
from hami_mock.views.driver.root import STATE_FOLDER, Step, driven
from hami_mock.views.driver.state_file import StateFile

_REMOVE = "remove"
_STEPS = {
    "fs": frozenset({Step.FS}),
    "driver": frozenset({Step.DRIVER}),
    "all": frozenset(Step),
}
_SHOWN = 12
"""How many paths a table has; -o json has all of them."""


def parser() -> Parser:
    parser = options_parser(
        "driver",
        usage="fs|driver|all|remove [FLAGS]",
        examples=(
            "driver all --driver-root /tmp/driver --nvidia-cards 8 --nvidia-model H100-SXM5-80GB",
            "driver all --driver-root /tmp/driver --dry-run -o json",
            "LD_LIBRARY_PATH=/tmp/driver/lib64 nvitop    # after hami-mock driver all",
            "driver remove --driver-root /tmp/driver",
        ),
    )
    parser.long_only |= OF_AGENTS
    text = "fs: files, device nodes and the state file; driver: libraries and programs; all: both, "
    text += "and a CDI specification; remove: remove what was made"
    parser.add("action", text, choices=[*_STEPS, _REMOVE], metavar="fs|driver|all|remove")
    text = "show what would be done; do nothing"
    return parser.add("--dry-run", text, action="store_true").add_output()


def run(parsed: Parsed) -> None:
    settings = load(flag_values(parsed))
    logs.set_up(settings.log_level, settings.log_format, settings.warnings)
    folder = Path(settings.driver_root)
    if parsed.action == _REMOVE:
        done = _remove(folder, dry=parsed.dry_run)
    else:
        done = _make(settings, folder, _STEPS[parsed.action], dry=parsed.dry_run)
    data = {
        "root": str(folder),
        "dry_run": parsed.dry_run,
        "summary": summary(done),
        "paths": as_data(done),
    }
    show(data, parsed.output, _lines(data, done))


def _make(settings: Settings, folder: Path, steps: frozenset[Step], *, dry: bool) -> Sequence[Done]:
    every = anyio.run(planning.cards, settings)
    state = NodeState(Node(settings.node_name, every, ()))
    driver, cards = driven(every)
    shown = DriverCards(driver, cards, settings.driver_version, state)
    file = StateFile(folder / STATE_FOLDER)
    make_state = file.is_other if dry else file.show
    root = Root(folder, lambda: make_state(shown.shown()), dry=dry)
    try:
        return make_steps(root, steps, driver, shown.machine, compiled.read)[0]
    finally:
        file.close()
        root.release()


def _remove(folder: Path, *, dry: bool) -> Sequence[Done]:
    root = Root(folder, dry=dry)
    try:
        return root.remove()
    finally:
        root.release()


def _lines(data: Mapping[str, Any], done: Sequence[Done]) -> Iterator[str]:
    counts = ", ".join(f"{count} {what}" for what, count in data["summary"].items())
    if data["dry_run"]:
        counts = counts.replace(" ", " would be ", 1)
    yield f"{paint(data['root'], Style.BOLD)}: {counts or 'nothing to do'}"
    news = [each for each in done if each.what not in (What.KEPT, What.LEFT)]
    if news:
        yield ""
        yield from table(("PATH", ""), [(each.path, each.what) for each in news[:_SHOWN]], "  ")
        if len(news) > _SHOWN:
            yield f"… and {len(news) - _SHOWN} more: -o json lists all of them"
    reasons = {each.why: each.path for each in reversed(done) if each.what is What.LEFT}
    for why, path in reversed(reasons.items()):
        count = sum(each.why == why for each in done)
        more = f" and {count - 1} more" if count > 1 else ""
        yield ""
        yield f"{paint('notice', Style.YELLOW, Style.BOLD)}: {path}{more}: {why}"
