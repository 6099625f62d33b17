import os
import resource
from pathlib import Path

import pytest

from hami_mock.errors import UsageError
from hami_mock.kit import files
from hami_mock.kit.files import MOST_BYTES, read_bytes, read_text


def refusal(path: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_text("--x: can't read", path)
    (line,) = caught.value.problems
    start = f"--x: can't read {path!r}: "
    assert line.startswith(start)
    return line.removeprefix(start)


def test_a_text_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("é" * (MOST_BYTES // 2))
    assert read_text("", str(file)) == "é" * (MOST_BYTES // 2)
    assert read_bytes(str(file), 3) == b"\xc3\xa9\xc3"


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xff")
    assert refusal(str(file)) == "not UTF-8 text"
    file.write_bytes(b"x" * (MOST_BYTES + 1))
    assert refusal(str(file)) == "it has more than 1048576 bytes: shorten it"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/nowhere", "No such file or directory"), ("/", "Is a directory"),
     ("a\0b", "it is not a path"), ("\ud800", "it is not a path"),
     ("x" * 5000, "File name too long"),
     ("/dev/zero", "it has more than 1048576 bytes: shorten it")],
)  # fmt: skip
def test_what_is_no_file_is_refused(path: str, reason: str) -> None:
    assert refusal(path) == reason


def test_nobody_waits_for_ever_for_somebody_who_writes_to_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PATIENCE_SECONDS", 0.05)
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    assert refusal(pipe) == "a pipe that nobody writes to"
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    os.write(writer, b"begun")
    assert refusal(pipe) == "a pipe that nobody writes to"
    os.close(writer)
    os.close(reader)


def test_the_output_of_a_command_is_read_through_its_pipe() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a: 1\n")
    os.close(writer)
    assert read_text("", f"/dev/fd/{reader}") == "a: 1\n"
    os.close(reader)


def test_a_long_output_is_read_in_pieces_and_with_many_files_open(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(bytes(5 * MOST_BYTES))
    reader, writer = os.pipe()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    others = [os.dup(reader) for _ in range(1100)]  # select() can't look at more than 1024
    try:
        assert len(read_bytes(str(file), 10 * MOST_BYTES)) == 5 * MOST_BYTES
    finally:
        for number in (reader, writer, *others):
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
