from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hami_mock.errors import StartError
from hami_mock.views.driver.compiled import find_library
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.integration.viewers import ShownNode, nobody_asked, shown_node


@pytest.fixture
def kubelet(socket_folder: Path, google_messages: ModuleType) -> Iterator[GrpcioKubelet]:
    with GrpcioKubelet(socket_folder, google_messages) as kubelet:
        yield kubelet


@pytest.fixture
def compiled_library() -> None:
    """Skip a test where the driver wasn't compiled."""
    try:
        find_library()
    except StartError as error:
        pytest.skip(str(error))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a driver root is to be made."""
    return tmp_path / "root"


@pytest.fixture
def shown(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShownNode]:
    with shown_node(socket_folder) as found:
        monkeypatch.setattr(found.feed, "_refresh", nobody_asked)
        yield found
