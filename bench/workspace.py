"""What the bench starts and leaves no trace of: folders, processes, generated messages."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from grpc_tools import protoc

ROOT = Path(__file__).parent.parent
_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class Workspace:
    """Temporary folders, and the environment that processes of the bench get."""

    folder: Path
    environment: dict[str, str]

    @contextmanager
    def sockets(self) -> Iterator[Path]:
        """Give a fresh folder for sockets. A socket's path must be short."""
        with tempfile.TemporaryDirectory(prefix="s", dir=self.folder) as name:
            yield Path(name)

    @contextmanager
    def process(
        self, arguments: Sequence[str], *, stdin: int = subprocess.DEVNULL, log: IO[str]
    ) -> "Iterator[subprocess.Popen[str]]":
        """Run this Python with arguments; stop it at the end, however that comes."""
        with subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Ctrl-C is for the bench, which then stops its processes in order.
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                _stop(process)


def _stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


@contextmanager
def workspace() -> Iterator[Workspace]:
    """Make a temporary folder with google's messages in it, and a clean environment."""
    # SIGTERM must run the same clean-up as Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="hm-bench-") as name:
        messages = Path(name) / "messages"
        messages.mkdir()
        code = protoc.main(
            [
                "protoc",
                f"--proto_path={ROOT / 'protos'}",
                f"--python_out={messages}",
                str(ROOT / "protos" / "deviceplugin.proto"),
            ]
        )
        if code:
            sys.exit(code)
        sys.path.insert(0, str(messages))
        yield Workspace(Path(name), _environment(messages))


def _environment(messages: Path) -> dict[str, str]:
    """Return our environment without what would change the agent's settings."""
    ours = ("HAMI_MOCK_", "KUBE", "NODE_NAME", "PYTHON", "COVERAGE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**kept, "PYTHONPATH": str(messages)}


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
