"""Which pod holds which device: the kubelet's pod-resources API, asked when somebody wants to know.

A device plugin itself never hears that a pod has ended.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError, StreamTerminatedError

from hami_mock.kubelet.holder import Holder
from hami_mock.kubelet.wire import read_pod_resources

_LIST = "/v1.PodResourcesLister/List"
_SECONDS = 10.0

_log = logging.getLogger(__name__)


class PodResources:
    """The kubelet's pod-resources socket."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._told = False

    async def holders(self) -> tuple[Holder, ...] | None:
        """Return who holds devices; None if the kubelet can't be asked, and the log says why."""
        if self._path is None:
            return None
        if not self._path.exists():
            self._tell(f"there is no {self._path}")
            return None
        channel = Channel(path=str(self._path), codec=_Bytes())
        try:
            ask = UnaryUnaryMethod(channel, _LIST, bytes, bytes)
            holders = tuple(_holders(await ask(b"", timeout=_SECONDS)))
        except (
            *(GRPCError, StreamTerminatedError, OSError, TimeoutError),
            *(ValueError, IndexError),  # an answer that is none
        ) as error:
            self._tell(f"{self._path}: {error}")
            return None
        finally:
            channel.close()
        self._told = False
        return holders

    def _tell(self, reason: str) -> None:
        if not self._told:
            _log.info("can't ask the kubelet who holds which device: %s", reason)
        self._told = True


def _holders(payload: bytes) -> Iterator[Holder]:
    for namespace, pod, name, devices in read_pod_resources(payload):
        if devices:
            yield Holder((namespace, pod, name), devices)


class _Bytes(CodecBase):
    """Leaves messages as they are: the answer may have a quarter of a million records."""

    __content_subtype__ = "proto"

    def encode(self, message: Any, message_type: Any) -> bytes:
        """Return the message."""
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> bytes:
        """Return the message."""
        return data
