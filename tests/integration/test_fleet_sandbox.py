"""The sandbox starts its programs, says why one doesn't come up, and leaves nothing."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from asyncinotify import Inotify, Mask

from hami_mock.errors import StartError
from hami_mock.fleet.sandbox import find_programs, sandbox
from tests.integration.fake_control_plane import NAMES, write_programs

_TAKEN_ONCE = """\
import os, pathlib, signal, socket, sys
mark = pathlib.Path(__file__).with_suffix(".started")
if not mark.exists():
    mark.touch()
    sys.exit("listen tcp 127.0.0.1: bind: address already in use")
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
    own.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
signal.pause()
"""
_LATE_FOR_KWOK = """\
#!/bin/sh
case "$*" in */programs/kwok\\ *) read -r _ <"${0%/*}/late" ;; esac
exec SETPRIV "$@"
"""
_KEEP = """\
import signal, sys
from hami_mock.fleet.sandbox import find_programs, sandbox
with sandbox(find_programs(sys.argv[1])) as running:
    print(running.folder, *(child.pid for child in running.children.values()), flush=True)
    signal.pause()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a sandbox makes its folders."""
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


def test_all_of_it_is_there_and_then_nothing(temporary: Path, programs: Path) -> None:
    with sandbox(write_programs(programs)) as running:
        assert tuple(running.children) == NAMES
        ends = [os.pidfd_open(child.pid) for child in running.children.values()]
        assert running.kubeconfig.stat().st_mode & 0o077 == 0, "others can read the token"
        assert not select.select(ends, [], [], 0)[0], "one has ended"
    assert len(select.select(ends, [], [], 0)[0]) == len(NAMES), "one is left"
    assert not [*temporary.iterdir()]
    for end in ends:
        os.close(end)


def test_one_that_does_not_come_up_is_named_with_its_log(temporary: Path, programs: Path) -> None:
    write_programs(programs, kube_apiserver='import sys\nsys.exit("unknown flag: --nonsense")')
    with (
        pytest.raises(StartError, match="kube-apiserver ended by itself with 1") as caught,
        sandbox(find_programs(str(programs))),
    ):
        pytest.fail("it came up")
    assert "unknown flag: --nonsense" in str(caught.value)
    (logs,) = temporary.iterdir()
    assert str(logs) in str(caught.value)
    assert "unknown flag" in (logs / "kube-apiserver.log").read_text()


def test_one_that_ends_meanwhile_is_an_error(temporary: Path, programs: Path) -> None:
    def lose_kwok() -> None:
        with sandbox(write_programs(programs)) as running:
            child = running.children["kwok"]
            os.kill(child.pid, signal.SIGKILL)
            child.wait()

    with pytest.raises(StartError, match="kwok ended by itself with -9"):
        lose_kwok()
    assert (next(temporary.iterdir()) / "kwok.log").exists()


def test_a_port_that_somebody_took_is_no_reason_to_fail(temporary: Path, programs: Path) -> None:
    with sandbox(write_programs(programs, etcd=_TAKEN_ONCE)):
        assert (programs / "etcd.started").exists()
    assert not [*temporary.iterdir()]


@pytest.mark.parametrize("is_late", [False, True])
def test_nothing_is_left_when_we_are_killed(temporary: Path, programs: Path, is_late: bool) -> None:
    """Not even the last program, if it only begins when we are gone."""
    own = write_programs(programs)
    os.mkfifo(programs / "late")
    if is_late:
        (programs / "setpriv").write_text(_LATE_FOR_KWOK.replace("SETPRIV", str(own.setpriv)))
        (programs / "setpriv").chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", _KEEP, str(programs)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as keeper:
        assert keeper.stdout is not None
        folder, *pids = keeper.stdout.readline().split()
        assert len(pids) == len(NAMES)
        ends = [os.pidfd_open(int(pid)) for pid in pids]
        keeper.kill()
    if is_late:
        (programs / "late").write_text("now\n")
    for end in ends:
        assert select.select([end], [], [], 10)[0], "a program outlives us"
        os.close(end)
    _wait_until_gone(Path(folder))


def test_what_is_missing_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2E_CACHE", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(StartError) as caught:
        find_programs()
    for words in ("apt-get install etcd-server", "kwok: `make e2e-prepare`", "$KUBEBUILDER_ASSETS"):
        assert words in str(caught.value)


def test_a_release_that_the_cache_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2E_CACHE", str(tmp_path))
    for name in ("1.35.8", "1.37.1"):
        (tmp_path / "kubernetes" / name).mkdir(parents=True)
    with pytest.raises(StartError, match=r"1.36.*1\.35\.8, 1\.37\.1"):
        find_programs(release="1.36")


def test_the_newest_kwok_of_the_cache_is_taken(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_programs(programs)
    (programs / "kwok").unlink()
    for version in ("v0.8.0", "v0.10.0", "v0.9.1"):
        folder = tmp_path / "kwok" / version
        folder.mkdir(parents=True)
        (folder / "kwok").touch(mode=0o755)
    monkeypatch.setenv("E2E_CACHE", str(tmp_path))
    assert find_programs(str(programs)).kwok == tmp_path / "kwok" / "v0.10.0" / "kwok"


def _wait_until_gone(folder: Path) -> None:
    with Inotify() as changes:
        changes.add_watch(folder.parent, Mask.DELETE)
        while folder.exists():
            assert select.select([changes.fd], [], [], 10)[0], f"{folder} is left"
            os.read(changes.fd, 4096)
