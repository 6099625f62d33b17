"""What all tests share."""

import importlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from grpc_tools import protoc


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own environment out of the settings."""
    for name in list(os.environ):
        if name.startswith("HAMI_MOCK_") or name in ("NODE_NAME", "KUBECONFIG"):
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


@pytest.fixture(scope="session")
def google_messages() -> Iterator[ModuleType]:
    """The device-plugin messages as google's protobuf has them: an independent reader and writer.

    They are generated afresh, so that they can't be older than protos/.
    """
    with tempfile.TemporaryDirectory() as folder:
        proto = Path(__file__).parent.parent / "protos" / "deviceplugin.proto"
        code = protoc.main(
            ["protoc", f"--proto_path={proto.parent}", f"--python_out={folder}", str(proto)]
        )
        assert code == 0
        sys.path.insert(0, folder)
        try:
            yield importlib.import_module("deviceplugin_pb2")
        finally:
            sys.path.remove(folder)


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A folder with a short name: the path of a unix socket has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="hm-") as name:
        yield Path(name)
