"""Slices of a driver that is well, classes as the manifests have them, claims, and their pods."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import yaml

from hami_mock.doctor import dra_found
from hami_mock.doctor.case import NodeCase, PodCase
from hami_mock.doctor.dra_found import DraFound
from hami_mock.doctor.pod_object import PodObject
from hami_mock.node.state import NodeState
from hami_mock.vendors.dra import Profile
from tests.unit.builders import NODE
from tests.unit.deploy.program import ROOT
from tests.unit.doctor.patients import NOW
from tests.unit.doctor.patients import node as hami_node
from tests.unit.views.dra import rig

HAMI, NVIDIA, MIG = "hami-core-gpu.project-hami.io", "gpu.nvidia.com", "mig.nvidia.com"
CLASSES = [*yaml.safe_load_all((ROOT / "components/dra/deviceclasses.yaml").read_text())]
Document = dict[str, Any]


def slices(
    state: NodeState | None = None, profile: Profile = rig.HAMI, node: str = NODE, **options: Any
) -> list[Document]:
    """What a driver publishes of two cards of 80 GiB, on a node."""
    pool = rig.pool_of(state or rig.state_of(), profile)
    found = []
    for i, each in enumerate(rig.specs(pool, **options)):
        spec = deepcopy(each) | {"nodeName": node, "pool": {**each["pool"], "name": node}}
        found.append({"kind": "ResourceSlice", "metadata": {"name": f"s-{i}"}, "spec": spec})
    return found


def request(cls: str = HAMI, name: str = "gpu", selector: str = "", **more: Any) -> Document:
    """A request; memory and cores are capacities."""
    asked = {key: more.pop(key) for key in ("memory", "cores") if key in more}
    exactly = {"deviceClassName": cls, **more}
    if asked:
        exactly["capacity"] = {"requests": asked}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": name, "exactly": exactly}


def claim(*requests: Document, name: str = "mine", status: Document | None = None) -> Document:
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [*requests] or [request()]}},
        "status": status or {},
    }


def held(
    device: str, name: str, driver: str = HAMI, node: str = NODE, users: int = 1, **consumed: str
) -> Document:
    """A claim that has (a part of) a device."""
    result = {"request": "gpu", "driver": driver, "pool": node, "device": device}
    if consumed:
        result |= {"consumedCapacity": consumed, "shareID": name}  # type: ignore[dict-item]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }
    reserved = [{"resource": "pods", "name": f"user-{i}"} for i in range(users)]
    return claim(name=name, status={"allocation": allocation, "reservedFor": reserved})


def template(*requests: Document, name: str = "part") -> Document:
    made = claim(*requests, name=name)
    return {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}


def pod(
    own: str = "mine", *, of_template: str = "", status: Document | None = None, **spec: Any
) -> Document:
    """A pod that waits with one claim: a claim of that name, or of a template."""
    named = {"resourceClaimTemplateName": of_template} if of_template else {}
    row = {"name": "gpu", **(named or {"resourceClaimName": own})}
    return {
        "kind": "Pod",
        "metadata": {"name": "waiting", "namespace": "default"},
        "spec": {"containers": [{"name": "c0"}], "resourceClaims": [row], **spec},
        "status": {"phase": "Pending", **(status or {})},
    }


def agent(name: str = NODE, **variables: str) -> Document:
    env = [{"name": f"HAMI_MOCK_{key}", "value": value} for key, value in variables.items()]
    return {
        "kind": "Pod",
        "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {"nodeName": name, "containers": [{"name": "hami-mock", "env": env}]},
        "status": {"phase": "Running"},
    }


def found(
    *documents: Document, classes: Iterable[Document] | None = CLASSES, **more: Any
) -> DraFound:
    """What there is: all of DRA is known, and nothing is missing but what isn't given."""
    by: dict[str, list[object]] = {name: [] for name in dra_found.KINDS.values()}
    for each in (*documents, *(classes or ())):
        by[dra_found.KINDS[each["kind"]]].append(each)
    if classes is None:
        del by[dra_found.CLASSES]
    return dra_found.read(by, more.pop("lacks", {}), **more)


def node(name: str = NODE, resources: Mapping[str, str] | None = None) -> Document:
    """A node with nothing but DRA."""
    made = hami_node()
    made["metadata"] = {"name": name, "annotations": {}}
    made["status"] |= {"capacity": resources or {}, "allocatable": resources or {}}
    return made


def node_case(dra: DraFound, *pods: Document, on: Document | None = None) -> NodeCase:
    return NodeCase(on or node(), NOW, None, [*map(PodObject.read, pods)], dra=dra)


def pod_case(
    document: Document, dra: DraFound, on: Document | None = None, elsewhere: int = 0
) -> PodCase:
    here = NodeCase(on, NOW, None, [], dra=dra) if on is not None else None
    others = [NodeCase(node(f"n{i}"), NOW, None, [], dra=dra) for i in range(elsewhere)]
    return PodCase(PodObject.read(document), NOW, here, elsewhere=others, dra=dra)
