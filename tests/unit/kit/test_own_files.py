import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hami_mock.kit.own_files import read_regular, remove_regular, write_whole

OTHERS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("/dev/zero"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
}
others = pytest.mark.parametrize("put", OTHERS.values(), ids=OTHERS)


def test_a_file_is_what_was_written_last(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content in (b"", b"one", b"x" * 10**6):
        write_whole(path, content)
        assert read_regular(path, 10**6) == content
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
    assert path.stat().st_mode & 0o777 == 0o644 & ~_umask()
    remove_regular(path)
    remove_regular(path)
    assert list(tmp_path.iterdir()) == []


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_a_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_regular(path, 4)


@others
def test_what_is_no_file_is_neither_read_nor_replaced_nor_removed(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    path = tmp_path / "a"
    put(path)
    for act in (
        lambda: read_regular(path, 5),
        lambda: write_whole(path, b"x"),
        lambda: remove_regular(path),
    ):
        with pytest.raises(OSError, match="a is not a regular file"):
            act()
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_what_there_was(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    write_whole(path, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"old"]
