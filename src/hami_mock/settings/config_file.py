"""The YAML file → flat options, each with the place where it stands.

A key is an option's name. A mapping joins its keys with a dash, so that these two say the same::

    nvidia-cards: 8
    nvidia: {cards: 8}

`nodes` is a list of sections, each with `match` (a glob or a list of them, for the node's name) and
the options of the nodes that match. The first section that matches counts, over the rest of the
file. `pools` are the nodes of a fleet (settings/pools.py); an agent has no use for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from hami_mock.errors import UsageError
from hami_mock.kit.files import read_text
from hami_mock.kit.values import Mistakes, shown
from hami_mock.settings.layers import Entry

if TYPE_CHECKING:
    from hami_mock.settings.pools import PoolSection

_DEEPEST = 5
_LONGEST = 500
"""Twice as long as the name of any node."""
_MOST_SECTIONS = 1000
"""All of them are checked, and a thousand take seconds."""

Entries = dict[str, Entry]


@dataclass(frozen=True)
class Section:
    """The options of the nodes whose name matches one of the globs; `place` is its key."""

    place: str
    globs: tuple[str, ...]
    entries: Entries

    def matches(self, node_name: str) -> bool:
        return any(fnmatchcase(node_name, glob) for glob in self.globs)


@dataclass(frozen=True)
class ConfigFile:
    """A file that has been read: what holds for all nodes, the sections, and the pools."""

    entries: Entries = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    pools: "tuple[PoolSection, ...]" = ()

    def section_of(self, node_name: str) -> Section | None:
        return next((s for s in self.sections if s.matches(node_name)), None)


def read(path: str) -> ConfigFile:
    """Read the file of `--config`. Raises UsageError with all that is wrong with its form."""
    return parse(path, read_text("--config: can't read", path))


def parse(path: str, text: str) -> ConfigFile:
    """Return what a file's text says. Raises UsageError with all that is wrong with its form."""
    # Here, because most agents have no file, and the parser takes longer to load than the flags.
    from hami_mock.kit import strict_yaml

    try:
        document = strict_yaml.load(text)
    except ValueError as error:
        raise UsageError(f"{path}: not valid YAML: {error}") from error
    if document is None:
        return ConfigFile()
    if not isinstance(document, dict):
        raise UsageError(f"{path}: the file must be a mapping of options, not {_name(document)}")
    mistakes = Mistakes(path)
    nodes = _rows(document, "nodes", _MOST_SECTIONS, "match several nodes with a glob", mistakes)
    found = [_section(node, f"nodes[{i}]", mistakes) for i, node in enumerate(nodes)]
    pools = _pools(document, mistakes) if "pools" in document else ()
    entries = _flatten(document, mistakes)
    if mistakes.lines:
        raise UsageError(mistakes.lines)
    sections = tuple(section for section in found if section is not None)
    return ConfigFile(entries, sections, pools)


def _rows(
    document: dict[Any, Any], key: str, most: int, instead: str, mistakes: Mistakes
) -> list[Any]:
    """Take a list of mappings out of the document."""
    rows = document.pop(key, None)
    if not isinstance(rows, list | None):
        noun = "sections" if key == "nodes" else key
        mistakes.say(key, f"must be a list of {noun}, not {_name(rows)}")
        return []
    if rows and len(rows) > most:
        noun = "sections" if key == "nodes" else key
        mistakes.say(key, f"{len(rows)} {noun} are too many, at most {most} are read: {instead}")
        return []
    return rows or []


def _pools(document: dict[Any, Any], mistakes: Mistakes) -> "tuple[PoolSection, ...]":
    # Here, because agents read files without them.
    from hami_mock.settings.pools import MOST_POOLS, check_names

    rows = _rows(document, "pools", MOST_POOLS, "make them larger", mistakes)
    found = [_pool(row, f"pools[{i}]", mistakes) for i, row in enumerate(rows)]
    pools = tuple(pool for pool in found if pool is not None)
    check_names(pools, mistakes)
    return pools


def _pool(row: Any, place: str, mistakes: Mistakes) -> "PoolSection | None":
    from hami_mock.settings import pools as pool_keys

    if not isinstance(row, dict):
        mistakes.say(place, "must be a mapping with the keys name and nodes")
        return None
    kept = pool_keys.read_own(row, place, mistakes)
    options = {key: value for key, value in row.items() if key not in pool_keys.KEYS}
    entries = _flatten(options, mistakes, place=place)
    return pool_keys.PoolSection(place, kept, entries) if kept else None


def _section(node: Any, place: str, mistakes: Mistakes) -> Section | None:
    if not isinstance(node, dict) or "match" not in node:
        mistakes.say(place, "must be a mapping with the key match, a glob for node names")
        return None
    globs = node["match"] if isinstance(node["match"], list) else [node["match"]]
    if not globs or not all(isinstance(glob, str) and 0 < len(glob) <= _LONGEST for glob in globs):
        mistakes.say(f"{place}.match", f"{shown(globs)} must be a glob or a list of globs")
        return None
    options = {key: value for key, value in node.items() if key != "match"}
    return Section(place, tuple(globs), _flatten(options, mistakes, place=place))


def _flatten(
    mapping: Mapping[Any, Any], mistakes: Mistakes, *, prefix: str = "", place: str = ""
) -> Entries:
    entries: Entries = {}
    for key, value in mapping.items():
        here = f"{place}.{key}" if place else str(key)
        if here.count(".") > _DEEPEST:
            mistakes.say(here, "is nested too deeply")
            continue
        name = prefix + str(key).replace("_", "-")
        inner = {name: Entry(value, here)}
        if isinstance(value, dict):
            inner = _flatten(value, mistakes, prefix=f"{name}-", place=here)
        for twice in entries.keys() & inner.keys():
            mistakes.say(
                inner[twice].place, f"sets the same option as {entries[twice].place}: keep one"
            )
        entries |= inner
    return entries


def _name(value: object) -> str:
    return "a list" if isinstance(value, list) else shown(value)
