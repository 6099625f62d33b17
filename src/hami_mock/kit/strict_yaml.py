"""YAML that loses nothing and bears anything that somebody may put into a file.

A key given twice is an error, where YAML would drop the first. What is too long, too deep or too
much is refused before anything is made of it: libyaml builds nested nodes by recursion in C, which
ends the process, and a few aliases of aliases make gigabytes.
"""

import json
import re
from collections.abc import Callable, Hashable
from typing import Any

import yaml

from hami_mock.kit.text import LONGEST, cut

MOST_CHARACTERS = 2**20
_CHARACTERS_OF_A_NODE = 32
"""For each key, value, list and mapping: a file may have as many as if each took so many."""
_MOST_DIRECTIVES = 10
_DEEPEST = 64
_LONGEST_NUMBER = 100


def load(text: str, most: int = MOST_CHARACTERS) -> Any:
    """Return the document. Raises ValueError, in one line, for what isn't valid YAML."""
    return _read(text, most, lambda: yaml.load(text, Loader=_Loader))  # noqa: S506 - a safe loader


def load_all(text: str, most: int = MOST_CHARACTERS) -> list[Any]:
    """Return the documents of a text with several. Raises ValueError as `load`."""
    documents: list[Any] = _read(text, most, lambda: [*yaml.load_all(text, Loader=_Loader)])
    return documents


def _read(text: str, most: int, parse: Callable[[], Any]) -> Any:
    try:
        _check_text(text, most)
        _check_nodes(text, most // _CHARACTERS_OF_A_NODE)
        return parse()
    except (
        # There is what YAML takes for a date or a number, and Python doesn't.
        *(yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError),
        *(ArithmeticError, RecursionError),
    ) as error:
        raise ValueError(_line(error)) from error


def load_json_or_yaml(text: str, most: int = MOST_CHARACTERS) -> Any:
    """Return the document: of JSON if it is an object in braces. Raises ValueError as `load`."""
    if not text.lstrip().startswith("{"):
        return load(text, most)
    try:
        _check_text(text, most)
        # Each of them separates two values, if it doesn't stand in a text.
        if text.count(",") > most // _CHARACTERS_OF_A_NODE:
            raise ValueError(f"more than {most // _CHARACTERS_OF_A_NODE} commas: shorten it")
        # YAML takes 1e3 for a text, and not all tabs.
        return json.loads(text, parse_int=_whole)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(_line(error)) from error


def _line(error: Exception) -> str:
    line = " ".join(str(error).split()).replace('in "<unicode string>", line', "in line")
    # The end of it says where.
    return cut(line) if len(line) <= LONGEST else f"{cut(line, LONGEST - 100)}{cut(line[-100:])}"


def _check_text(text: str, most: int) -> None:
    if len(text) > most:
        raise ValueError(f"{len(text)} characters are more than {most}: shorten it")
    # libyaml compares each directive with all others.
    if len(re.findall(r"(?:^|[\r\n\x85\u2028\u2029])%", text)) > _MOST_DIRECTIVES:
        raise ValueError(f"more than {_MOST_DIRECTIVES} lines begin with %: remove them")


def _check_nodes(text: str, most: int) -> None:
    """Go through the events, which takes no recursion and no memory. Raises MarkedYAMLError."""
    nodes = 0
    sizes: dict[str | None, int] = {}  # with all that the aliases in it stand for
    unfinished: list[tuple[str | None, int]] = []
    for event in yaml.parse(text, Loader=_Loader):
        match event:
            case yaml.CollectionStartEvent():
                unfinished.append((event.anchor, nodes))
                nodes += 1
            case yaml.CollectionEndEvent():
                anchor, before = unfinished.pop()
                sizes[anchor] = nodes - before
            case yaml.ScalarEvent():
                sizes[event.anchor] = 1
                nodes += 1
            case yaml.AliasEvent() if event.anchor in sizes:
                nodes += sizes[event.anchor]
            case yaml.AliasEvent():
                raise _refusal(
                    f"the alias *{event.anchor} names nothing, or a value that it is part of", event
                )
        if len(unfinished) > _DEEPEST:
            raise _refusal(f"more than {_DEEPEST} levels of lists and mappings", event)
        if nodes > most:
            aliases = "counting all that aliases stand for"
            raise _refusal(f"more than {most} keys and values, {aliases}: shorten it", event)


def _refusal(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits)} characters is too long")
    return int(digits)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # the base class says what is wrong with it
            if key in seen:
                raise _refusal(f"the key {key!r} appears twice", key_node)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def _short(construct: Callable[[Any, Any], Any]) -> Callable[[Any, yaml.ScalarNode], Any]:
    def construct_short(loader: Any, node: yaml.ScalarNode) -> Any:
        # Python writes no whole number of thousands of digits, and takes long to add up 1:1:1:1.
        if len(node.value) > _LONGEST_NUMBER:
            raise _refusal(f"a number of {len(node.value)} characters is too long", node)
        return construct(loader, node)

    return construct_short


_Loader.add_constructor("tag:yaml.org,2002:int", _short(_Loader.construct_yaml_int))
_Loader.add_constructor("tag:yaml.org,2002:float", _short(_Loader.construct_yaml_float))
