"""Examine a node or a pod: all checks, in the order that a user should read them. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hami_mock.doctor import (
    counts,
    liveness,
    naming,
    pod_assignment,
    pod_request,
    refusal,
    registration,
)
from hami_mock.doctor.case import LOCKS, SCHEDULER, NodeCase, PodCase, VendorCase
from hami_mock.doctor.finding import Finding, Severity, warning
from hami_mock.doctor.pod_object import PodObject
from hami_mock.settings.hami_config.device_config import DeviceConfig

_VENDOR_CHECKS: tuple[Callable[[NodeCase, VendorCase], Iterator[Finding]], ...] = (
    registration.register,
    registration.twins,
    registration.types,
    registration.health,
    registration.mig,
    registration.cordon,
    registration.topology,
    liveness.handshake,
    counts.count_is_there,
    counts.not_zero,
    counts.memory_number,
    counts.too_many,
)
_POD_CHECKS: tuple[Callable[[PodCase], Iterator[Finding]], ...] = (
    pod_assignment.outcome,
    refusal.hami_words,
    lambda case: naming.pod_names(case.pod, case.config),
    pod_request.scheduler,
    pod_request.count_is_asked,
    pod_request.cards_suffice,
    pod_request.card_is_large_enough,
    pod_request.percents,
    pod_request.node_suffices,
    pod_request.units,
    pod_assignment.bind_phase,
    pod_assignment.assigned_node,
    pod_assignment.assigned_cards,
)


@dataclass(frozen=True)
class Rest:
    """What else decides about a pod.

    - pods: the other ones that we know of
    - nodes: those that it may be for, if it isn't known which
    - scheduler: the name of HAMi's
    """

    pods: Sequence[Mapping[str, Any]] = ()
    nodes: Sequence[Mapping[str, Any]] = ()
    scheduler: str = SCHEDULER


def examine_node(
    node: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]] | None,
    now: datetime,
    device_config: DeviceConfig | None = None,
) -> list[Finding]:
    """Return what is wrong with a node, and a line for each vendor with which nothing is.

    `pods` are the node's, and the one that its lock names; None if nobody knows them.
    """
    case = _node_case(node, pods, now, device_config)
    findings = list(liveness.ready(case))
    for kind in LOCKS:
        findings += liveness.lock(case, kind)
    for seen in case.vendors:
        if counts.is_left_behind(case, seen):
            continue
        own = [finding for check in _VENDOR_CHECKS for finding in check(case, seen)]
        findings += own
        if all(finding.severity is Severity.NOTE for finding in own):
            findings.append(_well(case, seen))
    findings += registration.unknown_to_config(case)
    findings += naming.node_names(case)
    findings += counts.left_behind(case)
    if not case.vendors:
        told = "HAMi has nothing here: no annotation with cards, and none of its resources"
        advice = "if it should have, check that a device plugin is running on this node"
        findings.append(warning(f"node {case.node.name}", told, advice))
    return findings


def examine_pod(
    pod: Mapping[str, Any],
    node: Mapping[str, Any] | None,
    now: datetime,
    device_config: DeviceConfig | None = None,
    rest: Rest = Rest(),  # noqa: B008
) -> list[Finding]:
    """Return what is wrong with a pod, on the node that it is or may be for, if that is known."""
    read = PodObject.read(pod)
    here, *elsewhere = (
        _node_case(each, [*rest.pods, pod], now, device_config) if each is not None else None
        for each in (node, *(rest.nodes if node is None else ()))
    )
    possible = tuple(each for each in elsewhere if each)
    case = PodCase(read, now, here, device_config, rest.scheduler, possible)
    findings = [finding for check in _POD_CHECKS for finding in check(case)]
    if not case.asked and not findings:
        advice = "ask for a card in a container's limits, such as nvidia.com/gpu: 1"
        told = "it asks for none of HAMi's resources"
        findings.append(warning(f"pod {read.full_name}", told, advice))
    return findings


def _node_case(
    node: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]] | None,
    now: datetime,
    config: DeviceConfig | None,
) -> NodeCase:
    read = None if pods is None else [PodObject.read(each) for each in pods]
    return NodeCase(node, now, config, read)


def _well(case: NodeCase, seen: VendorCase) -> Finding:
    name = seen.vendor.resources.count
    told = f"{case.allocatable(name)} {name} allocatable"
    if seen.cards:
        memory = sum(card.memory for card in seen.cards)
        told = f"{len(seen.cards)} cards with {memory} MiB, {told}"
    return Finding(Severity.OK, seen.vendor.word, told)
