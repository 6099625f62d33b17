"""Units that hami-mock keeps in the Node's status: are they there, and does anybody keep them?"""

import json
from collections.abc import Iterator, Sequence

from hami_mock.doctor.case import NodeCase
from hami_mock.doctor.finding import Finding, Severity, error, warning
from hami_mock.doctor.pod_object import AGENT
from hami_mock.kubelet.limits import lists_devices
from hami_mock.views.status_note import ANNOTATION

RULE = "the verb patch of nodes/status, get and watch of nodes, and list and watch of pods"
"""What the agent's role must allow."""
_SHOWN = 6
"""How many names a line lists."""


def as_noted(case: NodeCase) -> Iterator[Finding]:
    """The node shows what the annotation says that an agent has written."""
    right = {}
    for name, count in case.in_status.items():
        capacity, allocatable = (
            amounts.get(name, 0) for amounts in (case.node.capacity, case.node.allocatable)
        )
        if count is None:
            yield warning(
                name,
                f"it stands in the node's capacity ({capacity}), but not in allocatable "
                f"({allocatable}), because the kubelet may still take it for a device plugin's: "
                "pods that ask for it stay Pending",
                "wait: the kubelet lets go of it 5 minutes after the plugin has ended or the "
                "kubelet has restarted. If it stays longer, check that hami-mock is running here",
            )
        elif capacity == allocatable == count:
            right[name] = count
        else:
            yield error(
                name,
                f"hami-mock wrote {count} into the node's status, but capacity is {capacity} and "
                f"allocatable is {allocatable}: something has changed it since, and "
                "hami-mock hasn't corrected it",
                "check that hami-mock is running on this node, and what `hami-mock ctl status` "
                "says there: it writes the number again within seconds",
            )
    if right:
        told = _listed([f"{count} {name}" for name, count in right.items()])
        yield Finding(Severity.OK, "Node's status", told)


def kept(case: NodeCase) -> Iterator[Finding]:
    """There is an agent that keeps what stands in the status."""
    if not case.in_status or case.pods is None:
        return
    label, value = AGENT
    own = (pod for pod in case.pods if pod.node_name == case.node.name and not pod.has_ended)
    if any(pod.labels.get(label) == value for pod in own):
        return
    gone = dict.fromkeys(case.in_status)
    patch = {
        "metadata": {"annotations": {ANNOTATION: None}},
        "status": {"capacity": gone, "allocatable": gone},
    }
    yield warning(
        ANNOTATION,
        f"no pod of hami-mock runs on this node, but its units are still in the node's status, "
        f"and pods are placed by them: {_listed([*case.in_status])}",
        "an agent that stops normally removes them; start it again, or remove them by hand: "
        f"kubectl patch node {case.node.name} --subresource=status --type=merge "
        f"-p '{json.dumps(patch)}'",
    )


def may_write(case: NodeCase) -> Iterator[Finding]:
    """The agent may write the status, where that is of use to it."""
    if not case.refusal or case.in_status:
        return
    is_costly = lists_devices(case.version)
    told = f"this pod may not write the status of its node: {case.refusal}"
    if is_costly:
        told += "; so every unit is a device, which costs a kubelet of 1.36 or newer a lot"
    advice = f"allow its service account {RULE}, as manifests/k8s-mock-rbac.yaml does; or choose "
    advice += "--units plugin, if it should only talk to the kubelet"
    yield Finding(Severity.WARNING if is_costly else Severity.NOTE, "nodes/status", told, advice)


def _listed(words: Sequence[str]) -> str:
    left = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {left} more" if left > 0 else "")
