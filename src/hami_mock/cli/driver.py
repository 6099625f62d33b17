"""`hami-mock driver`: a driver root, made and removed, for an agent that runs or without one."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from hami_mock.cli.flags import OF_CARDS, flag_values, options_parser
from hami_mock.cli.output import show
from hami_mock.cli.parser import Parsed, Parser
from hami_mock.errors import StartError
from hami_mock.kit import logs
from hami_mock.kit.terminal import Style, paint, table
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import Settings, load
from hami_mock.sources import planning
from hami_mock.vendors.driver import Driver, Machine
from hami_mock.views.driver import compiled
from hami_mock.views.driver.cards import DriverCards
from hami_mock.views.driver.making import Done, Root, What, as_data, make_steps, summary
from hami_mock.views.driver.manifest import OPTION
from hami_mock.views.driver.root import MANIFEST, STATE_FOLDER, Step, driven
from hami_mock.views.driver.state_file import StateFile

_REMOVE = "remove"
_STEPS = {
    "fs": frozenset({Step.FS}),
    "driver": frozenset({Step.DRIVER}),
    "all": frozenset(Step),
}
_BOTH = "`hami-mock driver all` makes files and libraries alike"
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
        only=OF_CARDS | {"driver-root", "driver-version"},
    )
    parser.long_only |= {"HAMi"}
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
        done = make_steps(root, steps, driver, shown.machine, compiled.read)[0]
        if dry:
            _check_writable(folder, done)
        return [*done, *_of_another_version(folder, steps, driver, shown.machine)]
    finally:
        file.close()
        root.release()


def _remove(folder: Path, *, dry: bool) -> Sequence[Done]:
    root = Root(folder, dry=dry)
    try:
        done = root.remove()
        if dry and done:
            _check_writable(folder, done)
        return done
    finally:
        root.release()


def _check_writable(folder: Path, done: Iterable[Done]) -> None:
    """Raise StartError where something would have to be written, and can't be."""
    changed = [folder / each.path for each in done if each.what not in (What.KEPT, What.LEFT)]
    # The list of what was made stands in the root itself.
    for needed in dict.fromkeys(path.parent for path in (folder / MANIFEST, *changed)):
        place = next(each for each in (needed, *needed.parents) if each.exists())
        if not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            raise StartError(
                f"{OPTION}: {str(place)!r} can't be written: run as root, or choose another folder"
            )


def _of_another_version(
    folder: Path, steps: Collection[Step], driver: Driver, machine: Machine
) -> Iterator[Done]:
    """Yield what was made before by a step that isn't done now, and doesn't go with the rest."""
    if Step.DRIVER not in steps:
        wanted, every = (driver.library.format(version=v) for v in (machine.version, "*.*"))
        for found in (folder / "lib64").glob(every):
            if found.name != wanted:
                why = f"this isn't version {machine.version}: {_BOTH}"
                yield Done(str(found.relative_to(folder)), What.LEFT, why)
    if Step.FS not in steps:
        for path, text in driver.files(machine).items():
            if (folder / path).is_file() and (folder / path).read_bytes() != text.encode():
                why = f"this is of another version, or for other cards: {_BOTH}"
                yield Done(path, What.LEFT, why)


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
