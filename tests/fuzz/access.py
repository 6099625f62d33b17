"""What says who asks which API server: kubeconfigs, and what credential plugins print."""

from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from hami_mock.cluster import credential_plugin
from hami_mock.cluster.access import Access, AccessError
from hami_mock.cluster.credential_plugin import Credential
from hami_mock.cluster.kubeconfig import Kubeconfig
from hami_mock.cluster.kubeconfig_file import Section
from hami_mock.cluster.pool import Pool
from tests.fuzz import seeds
from tests.fuzz.parsers import file_of
from tests.fuzz.target import Broken, Target


def _kubeconfig(data: bytes) -> None:
    # An input could name any program.
    with patch.object(credential_plugin, "run", _run_nothing):
        access = _result(Kubeconfig([Path(file_of(data, "kubeconfig"))]).load())
    with suppress(OSError, ValueError):  # no certificate, or not its key
        Pool(access.endpoint)


async def _run_nothing(*_: object) -> Credential:
    return Credential()


def _result(coroutine: Coroutine[object, None, Access]) -> Access:
    """Return what a coroutine that never waits returns."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        access: Access = end.value
        return access
    raise Broken("it waits")


def _credential(data: bytes) -> None:
    credential_plugin.read(Section({}, "exec", Path()), data, "v1")


TARGETS = (
    Target("kubeconfig", _kubeconfig, (AccessError,), [s.encode() for s in seeds.KUBECONFIGS]),
    Target("credential", _credential, (AccessError,), [s.encode() for s in seeds.CREDENTIALS]),
)
