"""What a stream of server-sent events says."""

import json
from collections.abc import Iterable, Iterator
from typing import Any


def messages(lines: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield the events with their names, until the lines end."""
    name = ""
    for line in lines:
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, json.loads(value)
