"""A pod as the placer knows it → a manifest that a real scheduler reads the same from. Pure."""

from collections.abc import Mapping
from typing import Any

from hami_mock.whatif.demand import CPU, FIELD, Container, Match, PodKind, Term, Toleration

Object = dict[str, Any]


def pod_manifest(
    name: str, kind: PodKind, namespace: str, scheduler: str = "", only: str = ""
) -> Object:
    """Return a pod; `only` is the one node that it is for."""
    spec: Object = {
        "containers": [_container(n, each) for n, each in _some(kind, is_init=False)],
        "initContainers": [_container(n, each) for n, each in _some(kind, is_init=True)],
        "tolerations": [_toleration(each) for each in kind.tolerations],
        "nodeSelector": dict(kind.selector),
        "affinity": _affinity(kind.terms, only or kind.node_name),
        "topologySpreadConstraints": [
            {
                "topologyKey": each.key,
                "maxSkew": each.skew,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchExpressions": [_match(one) for one in each.matches]},
            }
            for each in kind.spreads
        ],
        "terminationGracePeriodSeconds": 0,
    }
    if scheduler:
        spec["schedulerName"] = scheduler
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": dict(kind.labels),
        "annotations": dict(kind.annotations),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _some(kind: PodKind, *, is_init: bool) -> list[tuple[str, Container]]:
    some = [each for each in kind.containers if each.is_init is is_init]
    return [(f"{'init' if is_init else 'c'}{n}", each) for n, each in enumerate(some)]


def _container(name: str, container: Container) -> Object:
    asks = {key: _quantity(key, amount) for key, amount in container.asks.items()}
    devices = {key: amount for key, amount in asks.items() if "/" in key}
    made = {"name": name, "image": "none", "resources": {"requests": asks, "limits": devices}}
    return {**made, "restartPolicy": "Always"} if container.is_sidecar else made


def _quantity(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)


def _toleration(toleration: Toleration) -> Mapping[str, str]:
    operator = "Exists" if toleration.value is None else "Equal"
    found = {"key": toleration.key, "operator": operator, "effect": toleration.effect}
    return {**found, "value": toleration.value} if toleration.value else found


def _affinity(terms: tuple[Term, ...], only: str) -> Object:
    every = [[*term] for term in terms]
    if only:
        every = [[*term, Match(FIELD, "In", (only,))] for term in every or [[]]]
    if not every:
        return {}
    required = {"nodeSelectorTerms": [_term(term) for term in every]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _term(term: list[Match]) -> Object:
    return {
        "matchExpressions": [_match(each) for each in term if each.key != FIELD],
        "matchFields": [_match(each) for each in term if each.key == FIELD],
    }


def _match(match: Match) -> Object:
    found: Object = {"key": match.key, "operator": match.operator}
    return {**found, "values": list(match.values)} if match.values else found
