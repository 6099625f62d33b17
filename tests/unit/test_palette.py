import struct
import zlib

import pytest

from tools.pictures.palette import _chunk, _chunks, with_palette

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(rows: list[bytes], width: int, kind: int) -> bytes:
    """Rows with their filters in front."""
    header = struct.pack(">IIBBBBB", width, len(rows), 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, data) for name, data in parts)


def colours(picture: bytes) -> list[list[bytes]]:
    """The colours of each row of a picture with a palette."""
    chunks = dict(_chunks(picture))
    width, height, depth, kind, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, kind) == (8, 3)
    palette, raw = chunks[b"PLTE"], zlib.decompress(chunks[b"IDAT"])
    rows = [raw[row * (width + 1) + 1 : (row + 1) * (width + 1)] for row in range(height)]
    return [[palette[3 * index : 3 * index + 3] for index in row] for row in rows]


@pytest.mark.parametrize(
    ("second", "colour"),
    [
        (b"\x00\x01\x02\x03\x04\x05\x06", b"\x01\x02\x03\x04\x05\x06"),
        (b"\x01\x01\x02\x03\x01\x01\x01", b"\x01\x02\x03\x02\x03\x04"),
        (b"\x02\x01\x01\x01\x01\x01\x01", b"\x0b\x15\x1f\x29\x33\x3d"),
        (b"\x03\x01\x01\x01\x00\x00\x00", b"\x06\x0b\x10\x17\x1e\x26"),
        (b"\x04\x01\x01\x01\x00\x00\x00", b"\x0b\x15\x1f\x28\x32\x3c"),
    ],
    ids=["none", "left", "above", "average", "paeth"],
)
def test_every_filter_of_a_row_is_undone(second: bytes, colour: bytes) -> None:
    first = b"\x00\x0a\x14\x1e\x28\x32\x3c"
    found = colours(with_palette(png([first, second], 2, 2)))
    assert found == [[first[1:4], first[4:]], [colour[:3], colour[3:]]]


def test_what_is_transparent_is_not_kept() -> None:
    found = colours(with_palette(png([b"\x00\x01\x02\x03\xff\x04\x05\x06\x80"], 2, 6)))
    assert found == [[b"\x01\x02\x03", b"\x04\x05\x06"]]


def test_rare_colours_become_the_nearest_frequent_one() -> None:
    many = b"".join(bytes((index, 0, 0)) * 2 for index in range(256))
    (row,) = colours(with_palette(png([b"\x00" + many + bytes((7, 1, 0))], 513, 2)))
    assert row[-1] == bytes((7, 0, 0))
    assert len({*row}) == 256
