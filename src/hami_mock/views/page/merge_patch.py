"""JSON Merge Patch (RFC 7396): what has changed between two documents. Pure."""

from collections.abc import Mapping
from typing import Any


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that makes one document of another; a key that is gone is None in it.

    A patch can't tell None from nothing, so it is for documents where both mean the same.
    """
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            if value != old:
                patch[key] = difference(old, value)
        elif value != old:
            patch[key] = value
    return patch
