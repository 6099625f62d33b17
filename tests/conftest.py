"""What all tests share."""

import importlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from grpc_tools import protoc

# Who runs the tests in the background may have these ignored. Programs would inherit that, and
# never hear a Ctrl-C that a test sends them.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own environment out of the settings."""
    for name in list(os.environ):
        is_proxy = name.lower() in ("http_proxy", "https_proxy", "no_proxy")
        if name.startswith("HAMI_MOCK_") or name in ("NODE_NAME", "KUBECONFIG") or is_proxy:
            monkeypatch.delenv(name)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    # The defaults are places of this machine's own agent and kubelet.
    monkeypatch.setenv("HAMI_MOCK_CONTROL_SOCKET", "")
    monkeypatch.setenv("HAMI_MOCK_POD_RESOURCES_SOCKET", "")


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    """Take away the handlers that `logs.set_up` leaves: their stderr ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(autouse=True)
def untouched_hangup() -> Iterator[None]:
    """Hear SIGHUP again after a test that calls `main(["run"])`: it ignores it from then on."""
    usual = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, usual)


@pytest.fixture(scope="session")
def google_messages() -> Iterator[ModuleType]:
    """The device-plugin messages as google's protobuf has them: an independent reader and writer.

    They are generated afresh, so that they can't be older than protos/.
    """
    with _generated("deviceplugin") as (messages,):
        yield messages


@pytest.fixture(scope="session")
def dra_messages() -> Iterator[tuple[ModuleType, ...]]:
    """The same of a DRA driver's messages: claims, health, registration."""
    with _generated("dra", "dra_health", "pluginregistration") as found:
        yield found


@contextmanager
def _generated(*names: str) -> Iterator[tuple[ModuleType, ...]]:
    protos = Path(__file__).parent.parent / "protos"
    with tempfile.TemporaryDirectory() as folder:
        files = [str(protos / f"{name}.proto") for name in names]
        assert (
            protoc.main(["protoc", f"--proto_path={protos}", f"--python_out={folder}", *files]) == 0
        )
        sys.path.insert(0, folder)
        try:
            yield tuple(importlib.import_module(f"{name}_pb2") for name in names)
        finally:
            sys.path.remove(folder)


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A folder with a short name: the path of a unix socket has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="hm-") as name:
        yield Path(name)
