"""New inputs from old ones: bytes that are flipped, cut and spliced, and documents that are bent.

What comes out depends on the random numbers alone, so a seed gives the same inputs again.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import yaml

LARGEST = 1024 * 1024
_DOCUMENT_LIMIT = 4096
"""What is larger isn't read as a document: reading would take longer than all else."""
_BIG = 200
"""One input of so many is large, deep or both: they find much, and take long."""

_TOKENS = (
    *(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\r\n", b"\n", b"\t", b" ", b'"', b"'", b"\\u0000"),
    *(b"\\ud800", b"{", b"}", b"[", b"]", b":", b",", b";", b"&a ", b"*a", b"<<: *a\n", b"!!int "),
    *(b"!!binary ", b"!!timestamp ", b"!!set ", b"!!python/none ", b"? ", b"- ", b"...", b"---\n"),
    *(b"null", b"true", b"NaN", b"Infinity", b"-0", b"1e999", b"0x", b"1_0", b"9" * 20),
    *(b"9" * 5000, b"2001-01-01 00:00:00 +23:59", b"0001-01-01T00:00:00+23:00", b"9999-12-31"),
    *(
        "٣".encode(),
        "\u017f".encode(),
        "\u2028".encode(),
        "İ".encode(),
        b"%s%n",
        b"../../",
        b"a" * 300,
    ),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, 1e308, float("inf"), float("-inf"), float("nan"), 10**30),
    *(2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400),
    *("", "x", "0", "-1", "1e999", "NaN", "\x00", "\n", "\ud800", "٣", "a" * 300, "9" * 5000),
    *([], {}, [[]], [None], {"": None}, {"a": {"b": {}}}, [1, "1", None, {}], "1,2,3", "*", "[a-"),
)


class Mutator:
    """Makes inputs of one target; `words` are what its format is made of."""

    def __init__(self, random: Random, words: Sequence[bytes], largest: int = LARGEST) -> None:
        self._random = random
        self._tokens = (*_TOKENS, *words, *words)
        self._largest = largest
        self._small: tuple[Callable[[bytes], bytes], ...] = (
            *(self._flip, self._cut, self._double, self._insert, self._replace, self._number),
            *(self._bend, self._bend, self._bend),
        )

    def mutate(self, data: bytes, other: bytes) -> bytes:
        """Return another input like `data`, maybe with something of the other one in it."""
        draw = self._random
        if draw.random() < 0.1:
            data = data[: self._place(data)] + other[self._place(other) :]
        for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 5))):
            data = draw.choice(self._small)(data)
        if draw.randrange(_BIG) == 0:
            data = draw.choice((self._nest, self._repeat, self._bomb))(data)
        return data[: self._largest]

    def _place(self, data: bytes) -> int:
        return self._random.randint(0, len(data))

    def _slice(self, data: bytes, longest: int = 64) -> tuple[int, int]:
        start = self._place(data)
        return start, min(len(data), start + self._random.randint(1, longest))

    def _flip(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self._random.randint(1, 3)):
            if changed:
                changed[self._random.randrange(len(changed))] ^= 1 << self._random.randrange(8)
        return bytes(changed)

    def _cut(self, data: bytes) -> bytes:
        start, stop = self._slice(data)
        return data[:start] + data[stop:]

    def _double(self, data: bytes) -> bytes:
        start, stop = self._slice(data)
        return data[:stop] + data[start:stop] * self._random.randint(1, 4) + data[stop:]

    def _insert(self, data: bytes) -> bytes:
        place = self._place(data)
        return data[:place] + self._random.choice(self._tokens) + data[place:]

    def _replace(self, data: bytes) -> bytes:
        start, stop = self._slice(data, 8)
        return data[:start] + self._random.choice(self._tokens) + data[stop:]

    def _number(self, data: bytes) -> bytes:
        """Put another number where one stands."""
        digits = [i for i, byte in enumerate(data[:LARGEST]) if 48 <= byte <= 57]
        if not digits:
            return self._insert(data)
        start = stop = self._random.choice(digits)
        while stop < len(data) and 48 <= data[stop] <= 57:
            stop += 1
        numbers = [value for value in _VALUES if type(value) in (int, float)]
        return data[:start] + str(self._random.choice(numbers)).encode() + data[stop:]

    def _nest(self, data: bytes) -> bytes:
        """Put a part of it into so many brackets."""
        start, stop = self._slice(data)
        depth = self._random.choice((50, 500, 1_100, 20_000, 200_000))
        opening, closing = self._random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"- ", b"")))
        inside = opening * depth + data[start:stop] + closing * depth
        return data[:start] + inside + data[stop:]

    def _repeat(self, data: bytes) -> bytes:
        """Repeat a part of it until it is large."""
        start, stop = self._slice(data, 256)
        piece = data[start:stop] or b"a"
        size = min(self._largest, 1 << self._random.randint(12, 22))
        return data[:start] + piece * (size // len(piece)) + data[stop:]

    def _bomb(self, data: bytes) -> bytes:
        """Let YAML's aliases multiply: a kilobyte that means gigabytes."""
        levels = self._random.randint(4, 12)
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]" for i in range(1, levels)]
        key = self._random.choice((b"nodes", b"steps", b"match", b"b")).decode()
        lines.append(f"{key}: *a{levels - 1}")
        return data + b"\n" + "\n".join(lines).encode() + b"\n"

    def _bend(self, data: bytes) -> bytes:
        """Read it as a document, change a node of that, and write it as JSON."""
        if len(data) > _DOCUMENT_LIMIT:
            return self._replace(data)
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            try:
                document = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            except Exception:
                return self._replace(data)
        if not isinstance(document, dict | list):
            return self._insert(data)
        try:
            self._change(document, self._nodes(document))
            return self._written(document) or self._flip(data)
        except (RecursionError, ValueError, TypeError):
            return self._flip(data)

    def _written(self, document: Any) -> bytes:
        """Return a document as JSON; nothing if it is too large: YAML's aliases may multiply."""
        written = bytearray()
        for chunk in json.JSONEncoder(default=str).iterencode(document):
            written += chunk.encode()
            if len(written) > self._largest:
                return b""
        return bytes(written)

    def _nodes(self, document: Any) -> list[tuple[Any, Any]]:
        """Return all (container, key) of a document."""
        found: list[tuple[Any, Any]] = []
        rest = [document]
        while rest and len(found) < 2000:
            node = rest.pop()
            keys = list(node) if isinstance(node, dict) else range(len(node))
            for key in keys:
                found.append((node, key))
                if isinstance(node[key], dict | list):
                    rest.append(node[key])
        return found

    def _change(self, document: Any, nodes: list[tuple[Any, Any]]) -> None:
        draw = self._random
        for _ in range(draw.randint(1, 3)):
            if not nodes:
                return
            container, key = draw.choice(nodes)
            if isinstance(container, list) and key >= len(container):
                continue
            match draw.randrange(5):
                case 0 if isinstance(container, dict):
                    container.pop(key, None)
                case 1 if isinstance(container, dict):
                    token = draw.choice(self._tokens).decode(errors="replace")
                    container[token] = container.get(key)
                case 2 if isinstance(container, list):
                    container.extend([container[key]] * draw.choice((1, 2, 300)))
                case 3:
                    token = draw.choice(self._tokens).decode(errors="replace")
                    container[key] = token
                case _:
                    other, at = draw.choice(nodes)
                    is_there = isinstance(other, dict) and at in other
                    value = other[at] if is_there and draw.random() < 0.3 else draw.choice(_VALUES)
                    # A copy: a document that contains itself can't be written.
                    container[key] = json.loads(json.dumps(value, default=str))
