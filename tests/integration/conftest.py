from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.integration.grpcio_kubelet import GrpcioKubelet


@pytest.fixture
def kubelet(socket_folder: Path, google_messages: ModuleType) -> Iterator[GrpcioKubelet]:
    with GrpcioKubelet(socket_folder, google_messages) as kubelet:
        yield kubelet
