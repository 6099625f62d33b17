"""Which pod holds which device: the kubelet's pod-resources API, asked when somebody wants to know.

A device plugin itself never hears that a pod has ended.
"""

import logging
from pathlib import Path

from hami_mock.errors import KubeletError
from hami_mock.kit.text import cut
from hami_mock.kubelet.holder import Holder
from hami_mock.kubelet.rpc import call
from hami_mock.kubelet.wire import read_pod_resources

LIST = "/v1.PodResourcesLister/List"
_SECONDS = 10.0

_log = logging.getLogger(__name__)


class PodResources:
    """The kubelet's pod-resources socket."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self.problem = "" if path else "no socket is set (--pod-resources-socket)"
        """Why the kubelet couldn't be asked; "" if it could."""

    async def holders(self) -> tuple[Holder, ...] | None:
        """Return who holds devices; None if the kubelet can't be asked, and the log says why."""
        if self._path is None:
            return None
        try:
            if not self._path.exists():
                raise KubeletError(f"there is no {self._path}")
            answer = await call(self._path, LIST, b"", _SECONDS)
            told = [(who, devices) for *who, devices in read_pod_resources(answer) if devices]
        except (KubeletError, ValueError, IndexError) as error:
            if not self.problem:
                _log.warning("can't ask the kubelet who holds which device: %s", error)
            self.problem = cut(str(error))
            return None
        self.problem = ""
        return tuple(Holder((namespace, pod, name), held) for (namespace, pod, name), held in told)
