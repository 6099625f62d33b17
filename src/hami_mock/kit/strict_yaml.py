"""YAML that loses nothing: a key given twice is an error, where YAML would drop the first."""

from collections.abc import Hashable
from typing import Any

import yaml


def load(text: str) -> Any:
    """Return the document. Raises ValueError, in one line, for what isn't valid YAML."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe loader
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        # Not only YAMLError: there is what YAML takes for a date or a number, and Python doesn't.
        raise ValueError(" ".join(str(error).split())) from error


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
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} appears twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping
