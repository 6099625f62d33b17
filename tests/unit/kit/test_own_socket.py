import socket
from pathlib import Path

import pytest

from hami_mock.kit.own_socket import is_allowed, listen_at


@pytest.mark.parametrize("letters", [1, 200])
def test_a_socket_is_had_however_long_its_path_is(tmp_path: Path, letters: int) -> None:
    path = tmp_path / ("a" * letters) / "own.sock"
    with listen_at(path) as listener:
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(OSError, match="another agent listens on it"):
            listen_at(path)
        assert listener.getsockname()
    # Nobody listens any more.
    listen_at(path).close()


def test_what_is_no_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "own.sock"
    path.write_text("mine")
    with pytest.raises(OSError, match="not a socket"):
        listen_at(path)
    assert path.read_text() == "mine"


def test_our_own_user_is_allowed() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert is_allowed(one)
