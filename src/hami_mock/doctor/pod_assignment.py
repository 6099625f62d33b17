"""What became of the pod: where HAMi assigned it, which cards, and how far it got."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hami_mock.doctor.case import PodCase, vendors_of
from hami_mock.doctor.finding import Finding, error, warning
from hami_mock.hami.assignment import ASSIGNED_NODE, BIND_PHASE, BIND_TIME, Assignment, BindPhase
from hami_mock.hami.errors import Malformed
from hami_mock.vendors.hami_vendor import HamiVendor

# The kubelet asks for devices as soon as it sees the pod.
_LONG = timedelta(seconds=60)


def bind_phase(case: PodCase) -> Iterator[Finding]:
    """The node side allocated what the scheduler assigned."""
    phase = case.pod.annotations.get(BIND_PHASE)
    if phase == BindPhase.FAILED:
        yield error(
            BIND_PHASE,
            "failed: the device plugin could not give the pod what HAMi assigned",
            "the device plugin's log says why; delete the pod and create it again",
        )
    bound = _bind_time(case)
    waited = case.now - bound if bound else timedelta()
    if phase == BindPhase.ALLOCATING and waited > _LONG and not case.is_settled:
        yield error(
            BIND_PHASE,
            f"allocating for {int(waited.total_seconds())} s: the kubelet hasn't asked the device "
            "plugin, or got no answer",
            "check the pod's events, and that the device plugin is running on the node",
        )


def assigned_node(case: PodCase) -> Iterator[Finding]:
    assigned = case.pod.annotations.get(ASSIGNED_NODE)
    here = case.node.node.name if case.node else ""
    if not assigned:
        return
    if case.pod.node_name and case.pod.node_name != assigned:
        yield error(
            ASSIGNED_NODE,
            f"HAMi assigned it to {assigned}, but it is bound to {case.pod.node_name}, whose "
            "device plugin gives it nothing",
            "find out what placed it: another scheduler, or nodeName in its spec",
        )
    elif here and assigned != here:
        told = f"HAMi assigned it to {assigned}, not to {here}"
        yield warning(ASSIGNED_NODE, told, f"examine that one: hami-mock doctor {assigned}")


def assigned_cards(case: PodCase) -> Iterator[Finding]:
    """The assigned cards are on the node, and as many as asked for."""
    for vendor in vendors_of(case.config):
        text = case.pod.annotations.get(vendor.pods.allocated)
        if text is None:
            continue
        try:
            assignment = Assignment.parse(text)
        except Malformed as problem:
            advice = "delete the pod and create it again without this annotation"
            yield error(vendor.pods.allocated, f"it can't be read: {problem}", advice)
            continue
        yield from _unknown_cards(case, vendor, assignment)
        yield from _other_counts(case, vendor, assignment)


def _unknown_cards(case: PodCase, vendor: HamiVendor, assignment: Assignment) -> Iterator[Finding]:
    known = {card.id for card in case.cards(vendor)}
    is_here = case.node and case.pod.annotations.get(ASSIGNED_NODE) == case.node.node.name
    # An instance of a MIG card is called GPU-…[0-1].
    used = {each.id.partition("[")[0] for devices in assignment.containers for each in devices}
    for card_id in sorted(used - known) if known and is_here else ():
        yield error(
            vendor.pods.allocated,
            f"card {card_id!r} is no longer on the node",
            "its containers won't start again after a restart; delete the pod and create it again",
        )


def _other_counts(case: PodCase, vendor: HamiVendor, assignment: Assignment) -> Iterator[Finding]:
    where = vendor.pods.allocated
    segments = [devices for devices in assignment.containers if devices]
    asking = list(case.containers_asking(vendor))
    advice = "the device plugin refuses that; delete the pod and create it again"
    if len(segments) != len(asking):
        told = f"it has devices for {len(segments)} containers, and {len(asking)} ask for some"
        yield error(where, told, advice)
        return
    for devices, (container, count) in zip(segments, asking, strict=True):
        if len(devices) != count:
            told = f"container {container.name} asks for {count} devices and is assigned "
            yield error(where, f"{told}{len(devices)}", advice)


def outcome(case: PodCase) -> Iterator[Finding]:
    """Neither scheduler nor kubelet has refused the pod."""
    pod = case.pod
    where = f"pod {pod.full_name}"
    if pod.phase == "Failed" and pod.reason:
        told = f"the kubelet refused it: {pod.reason}: {pod.message}".rstrip(": ")
        advice = "fix the cause (see the other findings), then delete the pod and create it again"
        yield error(where, told, advice)
    elif pod.unscheduled and not case.is_settled:
        told = f"it isn't scheduled yet: {pod.unscheduled}"
        yield warning(where, told, "see the other findings, and kubectl describe pod")


def _bind_time(case: PodCase) -> datetime | None:
    text = case.pod.annotations.get(BIND_TIME, "")
    # Short enough that it is a time at all.
    is_time = text.isascii() and text.isdigit() and len(text) <= 11
    return datetime.fromtimestamp(int(text), UTC) if is_time else None
