from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.integration.viewers import ShownNode, shown_node


@pytest.fixture
def kubelet(socket_folder: Path, google_messages: ModuleType) -> Iterator[GrpcioKubelet]:
    with GrpcioKubelet(socket_folder, google_messages) as kubelet:
        yield kubelet


@pytest.fixture
def shown(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShownNode]:
    async def nobody_asked() -> None:
        """Leave it at what was invented: there is no kubelet that knows."""

    with shown_node(socket_folder) as found:
        monkeypatch.setattr(found.feed, "_refresh", nobody_asked)
        yield found
