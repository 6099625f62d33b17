"""A PNG with millions of colours → one with at most 256 of them, a quarter as large."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

_HEAD = b"\x89PNG\r\n\x1a\n"
_RGB, _RGBA, _PALETTE = 2, 6, 3
_MOST = 256
_Colour = tuple[int, int, int]


def with_palette(png: bytes) -> bytes:
    """Return the picture with its most frequent colours; the others become the nearest of them."""
    width, height, rows = _decode(png)
    pixels = [[*zip(row[::3], row[1::3], row[2::3], strict=True)] for row in rows]
    counts = Counter(pixel for row in pixels for pixel in row)
    palette = [colour for colour, _ in counts.most_common(_MOST)]
    number = {colour: _nearest(colour, palette) for colour in counts}
    raw = b"".join(b"\0" + bytes(map(number.__getitem__, row)) for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, _PALETTE, 0, 0, 0)
    colours = b"".join(map(bytes, palette))
    chunks = (
        (b"IHDR", header),
        (b"PLTE", colours),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    )
    return _HEAD + b"".join(_chunk(name, data) for name, data in chunks)


def _nearest(colour: _Colour, palette: list[_Colour]) -> int:
    red, green, blue = colour
    return min(
        range(len(palette)),
        key=lambda i: (
            (palette[i][0] - red) ** 2 + (palette[i][1] - green) ** 2 + (palette[i][2] - blue) ** 2
        ),
    )


def _decode(png: bytes) -> tuple[int, int, list[bytes]]:
    """Return the size and the rows of a picture, three bytes a pixel."""
    chunks = [*_chunks(png)]
    width, height, depth, kind, *_ = struct.unpack(">IIBBBBB", dict(chunks)[b"IHDR"])
    if depth != 8 or kind not in (_RGB, _RGBA):
        raise ValueError("only pictures with 8 bits for each of three or four channels")
    step = 3 if kind == _RGB else 4
    raw = zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT"))
    length = width * step
    rows: list[bytes] = []
    above = bytearray(length)
    for start in range(0, len(raw), length + 1):
        row = bytearray(raw[start + 1 : start + 1 + length])
        _unfilter(raw[start], row, above, step)
        above = row
        rows.append(bytes(row) if step == 3 else _without_alpha(row))
    return width, height, rows


def _without_alpha(row: bytearray) -> bytes:
    return b"".join(row[at : at + 3] for at in range(0, len(row), 4))


def _unfilter(kind: int, row: bytearray, above: bytearray, step: int) -> None:
    for at in range(len(row)):
        left = row[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        match kind:
            case 1:
                guess = left
            case 2:
                guess = above[at]
            case 3:
                guess = (left + above[at]) // 2
            case 4:
                guess = _paeth(left, above[at], corner)
            case _:
                return
        row[at] = (row[at] + guess) & 255


def _paeth(left: int, up: int, corner: int) -> int:
    near = left + up - corner
    return min((left, up, corner), key=lambda each: abs(near - each))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_HEAD)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
