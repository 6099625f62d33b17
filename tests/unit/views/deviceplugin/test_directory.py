"""The socket folder, as far as no running agent is needed."""

import os
import socket
from pathlib import Path

import anyio
import pytest

from hami_mock.errors import StartError, UsageError
from hami_mock.kit.folder_lock import FolderLock
from hami_mock.kit.folder_watch import identity
from hami_mock.views.deviceplugin.directory import SocketDirectory


def test_a_folder_that_can_not_be_read_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StartError, match="--socket-dir: '/' can't be read: Permission denied"):
        SocketDirectory("/").claim()


def test_a_file_in_place_of_the_folder_is_a_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"--socket-dir: '.*/file' is not a folder"):
        SocketDirectory(str(tmp_path / "file")).claim()


def test_one_agent_alone_has_the_folder(socket_folder: Path) -> None:
    first, second = SocketDirectory(str(socket_folder)), SocketDirectory(str(socket_folder))
    first.claim()
    first.claim()
    with pytest.raises(StartError, match=rf"another hami-mock \(process {os.getpid()}\) serves"):
        second.claim()
    first.release()
    second.claim()
    second.release()


def test_a_folder_that_comes_later_is_claimed_then(socket_folder: Path) -> None:
    path = socket_folder / "plugins"
    first, second = SocketDirectory(str(path)), SocketDirectory(str(path))
    first.claim()
    for _ in ("it comes", "it is made again"):
        path.mkdir()
        first.claim()
        with pytest.raises(StartError):
            second.claim()
        path.rmdir()
    first.release()


def test_the_owner_of_the_lock_may_not_be_seen(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = SocketDirectory(str(socket_folder)), SocketDirectory(str(socket_folder))
    first.claim()
    monkeypatch.setattr(FolderLock, "owner", lambda lock: None)
    with pytest.raises(StartError, match="another hami-mock serves"):
        second.claim()
    first.release()


def test_only_sockets_that_nobody_listens_on_are_stale(socket_folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as living, socket.socket(socket.AF_UNIX) as dead:
        living.bind(str(socket_folder / "hami-mock-living.sock"))
        living.listen()
        dead.bind(str(socket_folder / "hami-mock-dead.sock"))
        (socket_folder / "kubelet.sock").touch()
        removed = SocketDirectory(str(socket_folder)).remove_stale_sockets()
    assert removed == ["hami-mock-dead.sock"]
    left = sorted(path.name for path in socket_folder.iterdir())
    assert left == ["hami-mock-living.sock", "kubelet.sock"]


def test_a_socket_whose_queue_is_full_is_not_stale(socket_folder: Path) -> None:
    path = socket_folder / "hami-mock-busy.sock"
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as first:
        busy.bind(str(path))
        busy.listen(0)
        first.connect(str(path))
        assert SocketDirectory(str(socket_folder)).remove_stale_sockets() == []


def test_what_is_no_socket_of_ours_is_left_alone_and_told(
    socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = SocketDirectory(str(socket_folder))
    (socket_folder / "hami-mock-dir.sock").mkdir()
    (socket_folder / "hami-mock-loop.sock").symlink_to("hami-mock-loop.sock")
    (socket_folder / "hami-mock-file.sock").touch()
    (socket_folder / f"hami-mock-{'x' * 120}.sock").touch()
    os.mkfifo(socket_folder / "hami-mock-fifo.sock")
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as living:
        dead.bind(str(socket_folder / "elsewhere.sock"))
        (socket_folder / "hami-mock-link.sock").symlink_to("elsewhere.sock")
        living.bind(str(socket_folder / "other.sock"))
        living.listen()
        (socket_folder / "hami-mock-living.sock").symlink_to("other.sock")
        before = sorted(path.name for path in socket_folder.iterdir())
        folder.claim()
        assert folder.remove_stale_sockets() == []
        assert folder.stranger() is None
        folder.release()
    assert sorted(path.name for path in socket_folder.iterdir()) == before
    warned = {record.getMessage().partition(" is left alone")[0] for record in caplog.records}
    assert warned == {str(path) for path in socket_folder.glob("hami-mock-*")}


def test_a_folder_that_is_not_there_has_no_stale_sockets(socket_folder: Path) -> None:
    assert SocketDirectory(str(socket_folder / "none")).remove_stale_sockets() == []


def test_a_file_made_again_is_another_one(tmp_path: Path) -> None:
    file = tmp_path / "f"
    assert identity(file) is None
    file.touch()
    before = identity(file)
    file.chmod(0o600)
    assert identity(file) == before
    other = tmp_path / "g"
    other.touch()
    other.rename(file)
    assert identity(file) != before


@pytest.mark.parametrize("exists", [True, False])
def test_a_change_is_told_of(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "plugins"
    if exists:
        folder.mkdir()
    watched = SocketDirectory(str(folder))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(watched.run)
            tasks.start_soon(make_file)
            with anyio.fail_after(20):
                await watched.wait_until((folder / "x").exists)
            tasks.cancel_scope.cancel()

    async def make_file() -> None:
        folder.mkdir(exist_ok=True)
        (folder / "x").touch()

    anyio.run(main)
    assert (folder / "x").exists()
