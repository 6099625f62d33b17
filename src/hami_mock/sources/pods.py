"""Keeps the pods of this node in the state: what is written on them, and what they ask for.

A pod belongs to whoever may create it. What is kept of one is bounded, and what of it is odd isn't
there.
"""

import logging
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskStatus

from hami_mock.kit.text import cut
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.sources.annotated.node_object import amounts, part, text, texts

if TYPE_CHECKING:
    from hami_mock.cluster.kubernetes import Change

_KEPT = ("hami.io/", "hami-mock.io/", "run.ai/")
"""What annotations begin with that anybody here reads."""
_MOST_PODS = 1000
"""No kubelet runs more."""
_MOST_PARTS = 100
"""Containers, and conditions."""
_MOST_TEXT = 2**15
"""Characters of a pod's annotations; what goes beyond isn't kept."""
_LONGEST_NAME = 253

_log = logging.getLogger(__name__)

WatchPods = Callable[[str, Callable[[str], None]], AsyncGenerator["Change", None]]
"""Yields the pods of the node with that name, and each change of them; tells why if it can't."""


class PodReader:
    """Follows the pods that are bound to the node."""

    def __init__(
        self,
        state: NodeState,
        watch_pods: WatchPods,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make one that begins when it is wanted for the first time."""
        self._state = state
        self._watch_pods = watch_pods
        self._is_wanted = is_wanted
        self._told: set[str] = set()
        self._is_read = False
        self._trouble = ""

    @property
    def notice(self) -> str:
        """Why the pods aren't known; "" if they are, or nobody wants to know."""
        if not self._is_wanted() or (self._is_read and not self._trouble):
            return ""
        known = "can't be followed" if self._is_read else "have not been read yet"
        return f"the pods of this node {known}" + (self._trouble and f": {self._trouble}")

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await self._state.wait_until(self._is_wanted)
        watch = self._watch_pods(self._state.node.name, self._hear)
        async with aclosing(watch) as changes:
            async for change in changes:
                self._follow(change)

    def _hear(self, trouble: str) -> None:
        self._trouble = trouble

    def _follow(self, change: "Change") -> None:
        self._is_read = True
        now = [read_pod(thing) for thing in change.things]
        pods = {} if change.is_all else dict(self._state.pods)
        for pod in now:
            pods.pop((pod.namespace, pod.name), None)
            if not change.is_gone:
                pods[pod.namespace, pod.name] = pod
        kept = dict([*pods.items()][:_MOST_PODS])
        self._tell("many", len(pods) > len(kept), f"only {_MOST_PODS} pods of this node are read")
        for pod, thing in zip(now, change.things, strict=True):
            is_cut = not change.is_gone and len(pod.annotations) < len([*_kept(thing)])
            who = cut(f"{pod.namespace}/{pod.name}")
            self._tell(
                who, is_cut, f"pod {who}: not all of its annotations are read: they are too long"
            )
        if kept != self._state.pods:
            self._state.pods.clear()
            self._state.pods.update(kept)
            self._state.pod_changes.send()

    def _tell(self, what: str, is_so: bool, message: str) -> None:
        """Say once what stays so, and that it is so again if it was over."""
        if is_so and what not in self._told and len(self._told) < _MOST_PODS:
            _log.warning("%s", message)
            self._told.add(what)
        elif not is_so:
            self._told.discard(what)


def read_pod(thing: Mapping[str, Any]) -> Pod:
    """Read a pod as the API server gives it."""
    metadata, spec, status = (part(thing, key) for key in ("metadata", "spec", "status"))
    inits = [*_parts_of(spec, "initContainers")]
    others = [*_parts_of(spec, "containers")]
    left = _MOST_TEXT
    annotations = {}
    for key, value in _kept(thing):
        if len(key) + len(value) <= left:
            left -= len(key) + len(value)
            annotations[key] = value
    return Pod(
        namespace=_name(metadata, "namespace"),
        name=_name(metadata, "name"),
        uid=_name(metadata, "uid"),
        annotations=annotations,
        init_containers=tuple(_name(container, "name") for container in inits),
        containers=tuple(_name(container, "name") for container in others),
        started=_moment(text(status, "startTime")),
        requests={
            _name(container, "name"): found
            for container in (*inits, *others)
            if (found := _requests(container))
        },
        sidecars=frozenset(
            _name(container, "name") for container in inits if _is_sidecar(container)
        ),
        phase=cut(text(status, "phase"), _LONGEST_NAME),
        has_begun=any(map(_says_begun, _parts_of(status, "conditions"))),
    )


def _kept(thing: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    annotations = texts(part(thing, "metadata"), "annotations")
    return (pair for pair in annotations.items() if pair[0].startswith(_KEPT))


def _parts_of(document: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    found = document.get(key)
    if isinstance(found, list):
        yield from (each for each in found[:_MOST_PARTS] if isinstance(each, Mapping))


def _is_sidecar(container: Mapping[str, Any]) -> bool:
    return text(container, "restartPolicy") == "Always"


def _says_begun(condition: Mapping[str, Any]) -> bool:
    return (text(condition, "type"), text(condition, "status")) == ("Initialized", "True")


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    """Return the devices that a container asks for: for those, limits and requests are the same."""
    limits = amounts(part(container, "resources"), "limits")
    return {name: count for name, count in limits.items() if "/" in name and 0 < count < 2**31}


def _name(document: Mapping[str, Any], key: str) -> str:
    return cut(text(document, key), _LONGEST_NAME)


def _moment(told: str) -> float:
    """Return seconds since 1970; 0 for no moment."""
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(told).timestamp()
        return moment if math.isfinite(moment) and moment > 0 else 0.0
    return 0.0
