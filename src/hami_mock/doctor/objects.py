"""Nodes and pods from files: what `kubectl get -o json` (or yaml) printed."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.kit import strict_yaml
from hami_mock.sources.annotated.node_object import part, text

Document = Mapping[str, Any]
STDIN = "-"


@dataclass
class Objects:
    """The nodes and pods that were found, in the order they stood in."""

    nodes: list[Document] = field(default_factory=list)
    pods: list[Document] = field(default_factory=list)

    def add(self, document: object, place: str) -> None:
        """Add a Node, a Pod, or a list of such. Raises UsageError for anything else."""
        if not isinstance(document, Mapping):
            raise UsageError(f"{place}: must be a Kubernetes Node or Pod, or a list of them")
        kind = text(document, "kind")
        if kind == "Node":
            self.nodes.append(document)
        elif kind == "Pod":
            self.pods.append(document)
        elif isinstance(document.get("items"), list):
            for i, item in enumerate(document["items"]):
                # In a NodeList the items don't say what they are.
                own = {"kind": kind.removesuffix("List")} | dict(item) if _is_map(item) else item
                self.add(own, f"{place}: items[{i}]")
        else:
            raise UsageError(f"{place}: kind is {kind!r}: it must be Node, Pod or a list of them")


def read(paths: Iterable[str]) -> Objects:
    """Read files, - for standard input. Raises UsageError with all that is wrong."""
    objects = Objects()
    problems: list[str] = []
    for path in paths:
        place = "standard input" if path == STDIN else path
        try:
            objects.add(_load(path, place), place)
        except UsageError as error:
            problems += error.problems
    if problems:
        raise UsageError(problems)
    return objects


def name_of(document: Document) -> str:
    """Return an object's name."""
    return text(part(document, "metadata"), "name")


def full_name_of(pod: Document) -> str:
    """Return a pod's namespace and name."""
    return f"{text(part(pod, 'metadata'), 'namespace') or 'default'}/{name_of(pod)}"


def _load(path: str, place: str) -> object:
    try:
        content = sys.stdin.read() if path == STDIN else Path(path).read_text(encoding="utf-8")
        is_json = content.lstrip().startswith("{")
        return json.loads(content) if is_json else strict_yaml.load(content)
    except OSError as error:
        raise UsageError(f"{place}: can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: is neither JSON nor YAML: {error}") from error


def _is_map(item: object) -> bool:
    return isinstance(item, Mapping)
