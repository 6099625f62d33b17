"""How KWOK plays our nodes and their pods: its configuration and its Stages, as data. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from hami_mock.fleet import names
from hami_mock.fleet.stage_templates import HEARTBEAT, NODE, POD_DONE, POD_READY
from hami_mock.hami.assignment import BIND_PHASE
from hami_mock.vendors import VENDORS

_PARALLEL = 16
"""How many nodes, leases or pods KWOK works on at a time."""
_CENTURY_MS = 100 * 365 * 24 * 3600 * 1000

_DELETED = ".metadata.deletionTimestamp"
_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'
_POD_PHASE = ".status.phase"
_BIND_PHASE = f".metadata.annotations[{json.dumps(BIND_PHASE)}]"
_DURATION = f".metadata.annotations[{json.dumps(names.DURATION)}]"
_LIVES = {_DELETED: ("DoesNotExist",)}
_END = f"""
(.status.startTime | fromdateiso8601) as $start
| {_DURATION}
| select(test("^([0-9]+([.][0-9]+)?(ms|[dhms])?)+$"))
| [scan("([0-9]+(?:[.][0-9]+)?)(ms|[dhms])?")
   | (.[0] | tonumber) * ({{"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}}[.[1] // "s"])]
| $start + add | ceil | todateiso8601
"""
"""In jq: when a pod ends, as kit/durations reads how long it runs."""


class Bind(StrEnum):
    """Who answers HAMi's scheduler in a node's place."""

    NONE = "none"
    """A process of ours, or nobody."""
    STAGES = "stages"
    """KWOK alone. It can't check who owns a node's lock."""


def config(bind: Bind, lease_seconds: int) -> str:
    """Return the text of KWOK's configuration: options and Stages."""
    options = {
        "manageNodesWithAnnotationSelector": f"{names.KWOK_NODE}=fake",
        "nodeLeaseDurationSeconds": lease_seconds,
        "podPlayStageParallelism": _PARALLEL,
        "nodePlayStageParallelism": _PARALLEL,
        "nodeLeaseParallelism": _PARALLEL,
    }
    head = {"kind": "KwokConfiguration", "apiVersion": "config.kwok.x-k8s.io/v1alpha1"}
    return as_yaml([{**head, "options": options}, *stages(bind)])


def as_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return documents as a stream of YAML in which templates are easy to read."""
    import yaml  # it takes longer to load than all else

    # Ten times as fast as the one that is always there.
    fastest: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(fastest):  # type: ignore[misc, valid-type]
        def ignore_aliases(self, _: object) -> bool:
            return True

    def write(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, write)
    return yaml.dump_all(documents, Dumper=Dumper, sort_keys=False, width=1000, explicit_start=True)


def stages(bind: Bind) -> Iterator[dict[str, Any]]:
    """Yield the Stages."""
    yield _stage("node-initialize", "Node", {_READY: ("NotIn", "True")}, _status(NODE))
    # Its lease says that a node lives; this is for those who look at the node.
    rarely = {"durationMilliseconds": 600_000, "jitterDurationMilliseconds": 660_000}
    yield _stage("node-heartbeat", "Node", {_READY: ("In", "True")}, _status(HEARTBEAT), rarely)
    if bind is Bind.STAGES:
        assigned = {**_LIVES, _BIND_PHASE: ("In", "allocating")}
        yield _stage("hami-bind", "Pod", assigned, {"steps": [*_bind_steps()]})
    waiting = {_POD_PHASE: ("In", "Pending"), _BIND_PHASE: ("NotIn", "allocating", "failed")}
    yield _stage("pod-ready", "Pod", {**_LIVES, **waiting}, _status(POD_READY))
    # Counted from the pod's start: a delay alone would begin anew with each change of the pod.
    # With a duration that can't be read it runs on, as it does without one.
    at_its_end = {
        "durationMilliseconds": _CENTURY_MS,
        "durationFrom": {"expressionFrom": _END.strip()},
    }
    running = {_POD_PHASE: ("In", "Running"), _DURATION: ("Exists",)}
    yield _stage("pod-complete", "Pod", {**_LIVES, **running}, _status(POD_DONE), at_its_end)
    yield _stage("pod-delete", "Pod", {_DELETED: ("Exists",)}, {"next": {"delete": True}})


def _bind_steps() -> Iterator[dict[str, Any]]:
    """Yield what a device plugin of HAMi does: it says that the pod has its cards, and unlocks."""
    success = json.dumps({"annotations": {BIND_PHASE: "success"}})
    yield {"patch": {"root": "metadata", "type": "merge", "template": success}}
    locks = {vendor.hami.lock.annotation for vendor in VENDORS if vendor.hami.lock}
    gone = ", ".join(f"{json.dumps(lock)}: null" for lock in sorted(locks))
    template = (
        "apiVersion: v1\nkind: Node\nmetadata:\n"
        f"  name: {{{{ .spec.nodeName | Quote }}}}\n  annotations: {{{gone}}}\n"
    )
    # With a subresource it is never made anew: a node that was deleted meanwhile stays so.
    yield {"apply": {"type": "merge", "subresource": "status", "template": template}}


def _stage(
    name: str,
    kind: str,
    selector: Mapping[str, Iterable[str]],
    then: Mapping[str, Any],
    delay: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a Stage. The selector's rules are jq → an operator and its values."""
    rules = [
        {"key": key, "operator": operator, **({"values": values} if values else {})}
        for key, (operator, *values) in selector.items()
    ]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": f"hami-mock-{name}"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": rules},
            **({"delay": delay} if delay else {}),
            **then,
        },
    }


def _status(template: str) -> dict[str, Any]:
    return {"next": {"statusTemplate": template}}
