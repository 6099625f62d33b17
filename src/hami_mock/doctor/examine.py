"""Examine a node or a pod: all checks, in the order that a user should read them. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from hami_mock.doctor import (
    counts,
    dra_allocated,
    dra_claims,
    dra_slices,
    in_status,
    liveness,
    naming,
    pod_assignment,
    pod_request,
    refusal,
    registration,
)
from hami_mock.doctor.case import LOCKS, NodeCase, PodCase, VendorCase
from hami_mock.doctor.finding import Finding, Severity, warning

_MOST = 100
"""How many findings of one check are shown."""

_VENDOR_CHECKS: tuple[Callable[[NodeCase, VendorCase], Iterator[Finding]], ...] = (
    registration.register,
    registration.twins,
    registration.types,
    registration.health,
    registration.mig,
    registration.mig_rules,
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
    dra_claims.not_looked,
    dra_claims.claims,
    dra_claims.extended,
    dra_allocated.allocated,
    pod_assignment.bind_phase,
    pod_assignment.assigned_node,
    pod_assignment.assigned_cards,
)


def examine_node(case: NodeCase) -> list[Finding]:
    """Return what is wrong with a node, and a line for each vendor with which nothing is."""
    findings = list(liveness.ready(case))
    for kind in LOCKS:
        findings += liveness.lock(case, kind)
    for seen in case.vendors:
        if counts.is_left_behind(case, seen):
            continue
        own = [finding for check in _VENDOR_CHECKS for finding in _first(check(case, seen))]
        findings += own
        if all(finding.severity is Severity.NOTE for finding in own):
            findings.append(_well(case, seen))
    for check in (in_status.as_noted, in_status.kept, in_status.may_write):
        findings += _first(check(case))
    of_dra = [finding for check in dra_slices.CHECKS for finding in _first(check(case))]
    findings += of_dra
    findings += dra_slices.well(case, of_dra)
    findings += registration.unknown_to_config(case)
    findings += _first(naming.node_names(case))
    findings += counts.left_behind(case)
    if not case.vendors and not dra_slices.has_slices(case):
        told = "HAMi has nothing here: no annotation with cards, and none of its resources"
        advice = "if it should have, check that a device plugin is running on this node"
        findings.append(warning(f"node {case.node.name}", told, advice))
    return findings


def examine_pod(case: PodCase) -> list[Finding]:
    """Return what is wrong with a pod, on the node that it is or may be for, if that is known."""
    findings = [finding for check in _POD_CHECKS for finding in _first(check(case))]
    asks_dra = bool(case.pod.claims) or any(map(case.has_by_dra, case.pod.asks))
    if not case.asked and not asks_dra and not findings:
        advice = "ask for a card in a container's limits, such as nvidia.com/gpu: 1"
        told = "it asks for none of HAMi's resources, and has no claim"
        findings.append(warning(f"pod {case.pod.full_name}", told, advice))
    return findings


def _first(findings: Iterator[Finding]) -> list[Finding]:
    """Return what a check found, as far as anybody would read it."""
    found = list(islice(findings, _MOST + 1))
    if len(found) > _MOST:
        told = f"there are more findings like the {_MOST} above"
        found[-1] = replace(found[-1], what=told, advice="fix these, then run the doctor again")
    return found


def _well(case: NodeCase, seen: VendorCase) -> Finding:
    name = seen.vendor.resources.count
    told = f"{case.allocatable(name)} {name} allocatable"
    if seen.cards:
        memory = sum(card.memory for card in seen.cards)
        told = f"{len(seen.cards)} cards with {memory} MiB, {told}"
    return Finding(Severity.OK, seen.vendor.word, told)
