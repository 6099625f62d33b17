"""What is a fleet's of a node, as text in the node's annotation. Pure.

Who starts a fleet with other cards in its file takes away by it what the nodes had before.
"""

import json
from typing import NamedTuple


class Note(NamedTuple):
    """The labels, annotations and resources that are a fleet's."""

    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return json.dumps({key: names for key, names in self._asdict().items() if names})


def read(text: str | None) -> Note:
    """Return what an annotation says. Anybody may have written it; nonsense is no note."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return Note()
    parts = [found.get(key, []) for key in Note._fields] if isinstance(found, dict) else []
    if not all(isinstance(part, list) and all(type(n) is str for n in part) for part in parts):
        return Note()
    return Note(*(tuple(part) for part in parts))
