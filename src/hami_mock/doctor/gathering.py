"""Which nodes and pods to examine: from files that kubectl wrote, or from the API server."""

import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hami_mock.doctor import dra_found
from hami_mock.doctor.case import LOCKS
from hami_mock.doctor.dra_found import KINDS, NOTHING, DraFound
from hami_mock.doctor.pod_object import PodObject
from hami_mock.errors import ClusterError, NotAllowed, NotThere, UsageError
from hami_mock.hami.errors import Malformed
from hami_mock.hami.lock import NodeLock
from hami_mock.kit import strict_yaml
from hami_mock.kit.files import read_bytes
from hami_mock.sources.annotated.node_object import NodeObject, part, text

if TYPE_CHECKING:
    from hami_mock.cluster.kubernetes import Kubernetes

Document = Mapping[str, Any]

MOST_CHARACTERS = 2**28
"""All pods of a large cluster are less; a device file would never end."""
_KINDS = ", ".join(("Node", "Pod", *KINDS))
_PATIENCE_SECONDS = 60.0
"""How long kubectl may take in a shell's <(kubectl …)."""


@dataclass
class Objects:
    """The nodes, pods and objects of DRA that were found, in the order they stood in."""

    nodes: list[Document] = field(default_factory=list)
    pods: list[PodObject] = field(default_factory=list)
    of_dra: dict[str, list[object]] = field(default_factory=dict)
    """By resource; one that isn't there was in no file."""

    def add(self, document: object, place: str) -> None:
        """Add a Node, a Pod, one of DRA's, or a list. Raises UsageError for anything else."""
        if not isinstance(document, Mapping):
            raise UsageError(f"{place}: must be a Kubernetes {_KINDS}, or a list of them")
        kind = text(document, "kind")
        of_dra = KINDS.get(kind.removesuffix("List"))
        if kind == "Node":
            self.nodes.append(document)
        elif kind == "Pod":
            self.pods.append(PodObject.read(document))
        elif of_dra and kind in KINDS:
            self.of_dra.setdefault(of_dra, []).append(document)
        elif isinstance(document.get("items"), list):
            if of_dra:
                self.of_dra.setdefault(of_dra, [])  # it is known that there are none
            for i, item in enumerate(document["items"]):
                # In a NodeList the items don't say what they are.
                is_map = isinstance(item, Mapping)
                own = {"kind": kind.removesuffix("List")} | dict(item) if is_map else item
                self.add(own, f"{place}: items[{i}]")
        else:
            raise UsageError(f"{place}: kind is {kind!r}: it must be {_KINDS} or a list of them")


def read(paths: Iterable[str]) -> Objects:
    """Read files, - for standard input. Raises UsageError with all that is wrong."""
    objects = Objects()
    problems: list[str] = []
    for path in paths:
        place = "standard input" if path == "-" else path
        try:
            objects.add(_load(path, place), place)
        except UsageError as error:
            problems += error.problems
        except RecursionError:
            problems.append(f"{place}: is nested too deeply")
    if problems:
        raise UsageError(problems)
    return objects


def _load(path: str, place: str) -> object:
    try:
        # One more than is taken tells that there are more.
        content = (
            sys.stdin.read(MOST_CHARACTERS + 1)
            if path == "-"
            else read_bytes(path, MOST_CHARACTERS + 1, _PATIENCE_SECONDS).decode()
        )
        if len(content) > MOST_CHARACTERS:
            raise UsageError(f"{place}: has more than {MOST_CHARACTERS} characters")
        return strict_yaml.load_json_or_yaml(content, MOST_CHARACTERS)
    except OSError as error:
        raise UsageError(f"{place}: can't be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{place}: is neither JSON nor YAML: {error}") from error


def name_of(document: Document) -> str:
    return text(part(document, "metadata"), "name")


@dataclass(frozen=True)
class Gathered:
    """What to examine.

    - around: the pods that we know of
    - node_pods: the same if these are all of the node, else None
    - candidates: nodes that a pod may be for, not examined themselves
    - refusal: why this pod may not write the node's status, if it tried
    - dra: slices, claims and classes
    """

    nodes: Sequence[Document] = ()
    pods: Sequence[PodObject] = ()
    around: Sequence[PodObject] = ()
    node_pods: Sequence[PodObject] | None = None
    candidates: Sequence[Document] = ()
    refusal: str = ""
    dra: DraFound = NOTHING


def from_files(paths: Sequence[str], node_name: str | None, pod_name: str | None) -> Gathered:
    """Read files; without names all that is in them. Raises UsageError for what isn't there."""
    found = read(paths)
    nodes, pods = found.nodes, found.pods
    if node_name:
        nodes = [node for node in nodes if name_of(node) == node_name]
        if not nodes:
            raise UsageError(f"there is no node {node_name!r} in {', '.join(paths)}")
    if pod_name:
        wanted = "/".join(_split(pod_name))
        pods = [pod for pod in pods if pod.full_name == wanted]
        if not pods:
            raise UsageError(f"--pod: there is no pod {wanted!r} in {', '.join(paths)}")
    elif len(pods) > 1:
        pods = [pod for pod in pods if _concerns_hami(pod)]
    lacks = {
        name: f"there are no {name} in the files"
        for name in KINDS.values()
        if name not in found.of_dra
    }
    dra = dra_found.read(found.of_dra, lacks, is_partial=True)
    return Gathered(nodes, pods, around=found.pods, dra=dra)


async def from_cluster(node_name: str | None, pod_name: str | None) -> Gathered:
    """Ask the API server. Raises UsageError for what isn't there, ClusterError if it is away."""
    # Here, because it takes long to load, and files need nothing of it.
    from hami_mock.cluster.kubernetes import Kubernetes

    async with Kubernetes() as cluster:
        try:
            wanted = await cluster.pod(*_split(pod_name)) if pod_name else None
            pods = [PodObject.read(wanted)] if wanted else []
            this_node = os.environ.get("NODE_NAME") or socket.gethostname()
            name = node_name or (pods[0].for_node if pods else this_node)
            if not name:
                # The numbers of all nodes tell why none would do.
                everywhere = [PodObject.read(each) for each in await cluster.pods_on()]
                nodes = await cluster.nodes()
                dra = await dra_of(cluster)
                return Gathered((), pods, everywhere, candidates=nodes, dra=dra)
            node = await cluster.node(name)
            on_node = [PodObject.read(each) for each in await cluster.pods_on(name)]
        except NotThere as error:
            raise UsageError(str(error)) from error
        known = {pod.full_name for pod in on_node}
        for holder in _lock_holders(node):
            if holder not in known:
                try:
                    on_node.append(PodObject.read(await cluster.pod(*_split(holder))))
                except NotThere:
                    continue  # that is a finding
        refusal = await _refusal(cluster, name) if _is_agents_pod() else ""
        dra = await dra_of(cluster, "" if pods else name)
    return Gathered([node], pods, on_node, on_node, refusal=refusal, dra=dra)


async def dra_of(cluster: "Kubernetes", node_name: str = "") -> DraFound:
    """Read the slices of a node, or all that claims are judged by; what can't be is noted."""
    from hami_mock.cluster import resources

    fields = f"spec.nodeName={node_name}" if node_name else ""
    wanted = [(resources.RESOURCE_SLICES, fields), (resources.DEVICE_CLASSES, "")]
    if not node_name:
        # Who holds the devices, and what is to be made.
        wanted += [(resources.RESOURCE_CLAIMS, ""), (resources.RESOURCE_CLAIM_TEMPLATES, "")]
    found: dict[str, list[Any]] = {}
    lacks: dict[str, str] = {}
    for resource, selected in wanted:
        try:
            found[resource.name] = await cluster.list_all(resource, selected)
        except NotThere:
            lacks[resource.name] = f"the API server has no {resource.group}/{resource.version}"
        except ClusterError as error:
            lacks[resource.name] = str(error)
    return dra_found.read(found, lacks)


def _is_agents_pod() -> bool:
    """Tell whether what we may do is what the agent may do, and it may want to."""
    units, plugins = (os.environ.get(f"HAMI_MOCK_{name}") for name in ("UNITS", "DEVICE_PLUGINS"))
    return "KUBERNETES_SERVICE_HOST" in os.environ and units != "plugin" and plugins != "off"


async def _refusal(cluster: "Kubernetes", node_name: str) -> str:
    try:
        await cluster.check_node_status(node_name)
    except NotAllowed as error:
        return str(error)
    except ClusterError:
        return ""  # nobody knows; what there is to see was read
    return ""


def _split(pod_name: str) -> tuple[str, str]:
    namespace, slash, name = pod_name.rpartition("/")
    if not name or "/" in namespace or (slash and not namespace):
        raise UsageError(f"--pod: {pod_name!r} is not allowed: it must be NAMESPACE/NAME, or NAME")
    return namespace or "default", name


def _lock_holders(node: Document) -> list[str]:
    annotations = NodeObject.read(node).annotations
    holders = []
    for kind in LOCKS:
        try:
            lock = NodeLock.parse(annotations.get(kind.annotation, ""))
        except Malformed:
            continue  # that is a finding, or there is none
        holders += [f"{lock.namespace}/{lock.name}"] if lock.names_pod else []
    return holders


def _concerns_hami(pod: PodObject) -> bool:
    is_marked = any(name.startswith("hami.io/") for name in pod.annotations)
    return is_marked or bool(pod.claims) or any("/" in name for name in pod.asks)
