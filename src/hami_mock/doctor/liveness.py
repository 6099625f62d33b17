"""Is everybody there who should be (kubelet, plugin, scheduler), and who holds the lock?"""

from collections.abc import Iterator
from datetime import timedelta

from hami_mock.doctor.case import NodeCase, VendorCase
from hami_mock.doctor.finding import Finding, error, note, warning
from hami_mock.doctor.pod_object import PodObject, conditions
from hami_mock.hami.assignment import BIND_PHASE
from hami_mock.hami.errors import Malformed
from hami_mock.hami.handshake import REQUEST_LIFETIME, Handshake, HandshakeState
from hami_mock.hami.kinds import Lock
from hami_mock.hami.lock import NodeLock
from hami_mock.sources.annotated.node_object import part

# The node side has its devices seconds after the bind; a lock that old is stuck.
_STUCK = timedelta(seconds=30)
_ZONE = "(a time without a zone is read as UTC)"


def ready(case: NodeCase) -> Iterator[Finding]:
    """The kubelet says that it is ready, and nobody cordoned the node."""
    where = f"node {case.node.name}"
    for kind, status, message in conditions(part(case.document, "status")):
        if kind == "Ready" and status != "True":
            told = f"the node is not Ready: {message}".rstrip(": ")
            yield error(where, told, "no pod is placed here until it is; see kubectl describe node")
    if part(case.document, "spec").get("unschedulable") is True:
        advice = f"kubectl uncordon {case.node.name}"
        yield warning(where, "the node is cordoned: no new pod is placed here", advice)


def handshake(case: NodeCase, seen: VendorCase) -> Iterator[Finding]:
    """The scheduler asks, and the plugin answers."""
    where, vendor = seen.vendor.node.handshake, seen.vendor
    text = case.node.annotations.get(where) if where else None
    if not where or not (seen.cards or text):
        return
    if text is None:
        switch = vendor.scheduling.switch
        advice = "check that hami-scheduler is running, and that its --node-label-selector, "
        advice += "if any, selects this node"
        advice += f"; it needs {switch} for this vendor" if switch else ""
        told = f"the scheduler has never asked for {vendor.word} here, or has dropped it"
        yield warning(where, told, advice)
        return
    shaken = Handshake.parse(text)
    age = shaken.age(case.now) if shaken else None
    if shaken is None:
        return  # for the scheduler any other text is an answer
    count = vendor.resources.count
    restart = f"check that HAMi's device plugin for {vendor.maker} is running on this node"
    if shaken.state is HandshakeState.DELETED:
        told = f"{text!r}: the scheduler dropped {vendor.word} from this node and awaits a report"
        yield error(where, told, restart)
    elif shaken.drops_node(case.now, case.allocatable(count)):
        told = f"{text!r} has been unanswered for {_words(age)} and {count} is 0: "
        told += f"the scheduler drops {vendor.word} from this node {_ZONE}"
        yield error(where, told, restart)
    elif age is None or age < REQUEST_LIFETIME:
        return
    elif shaken.state is HandshakeState.REPORTED:
        told = f"the plugin reported {_words(age)} ago and the scheduler hasn't asked since {_ZONE}"
        yield warning(where, told, "check that hami-scheduler is running and is the leader")
    elif vendor.node.report or not seen.cards:
        told = f"{text!r} has been unanswered for {_words(age)}; the plugin should answer every "
        told += f"30 s; only {count} above 0 keeps the vendor {_ZONE}"
        yield warning(where, told, restart)
    else:
        told = f"{text!r} has been unanswered for {_words(age)}, which is normal since 2.8: the "
        told += f"vendor stays for as long as {count} is above 0 {_ZONE}"
        advice = "a scheduler before 2.8 would expect an answer: run the same version"
        yield note(where, told, advice)


def lock(case: NodeCase, kind: Lock) -> Iterator[Finding]:
    """No pod holds the node's lock for longer than it takes to allocate."""
    text = case.node.annotations.get(kind.annotation)
    if text is None:
        return
    undo = f"kubectl annotate node {case.node.name} {kind.annotation}-"
    try:
        held = NodeLock.parse(text)
    except Malformed as problem:
        told = f"the scheduler can't read it and binds no pod to this node: {problem}"
        yield error(kind.annotation, told, f"remove it: {undo}")
        return
    age = case.now - held.time
    whom = f"{held.namespace}/{held.name}" if held.names_pod else "a pod that it doesn't name"
    since = f"held by {whom} for {_words(age)}"
    advice = f"the next pod takes it over; to remove it now: {undo}"
    holder = next((p for p in case.pods or () if held.is_of(p.namespace, p.name)), None)
    if held.expired(case.now, kind.lifetime):
        yield warning(kind.annotation, f"{since}: it has expired", advice)
    elif held.names_pod and case.pods is not None and holder is None:
        yield warning(kind.annotation, f"{since}, but that pod is gone", advice)
    elif age >= _STUCK:
        left = _words(kind.lifetime - age)
        told = f"{since}{_state(holder)}: other pods are refused with `node lock "
        told += f"contention` for {left} more"
        advice = "check the device plugin's log for why it didn't finish Allocate for that pod; "
        yield error(kind.annotation, told, f"{advice}to unblock the others: {undo}")


def _state(pod: PodObject | None) -> str:
    if pod is None:
        return ""
    phase = pod.annotations.get(BIND_PHASE, "none")
    return f" ({pod.phase or 'no phase'}, bind-phase {phase})"


def _words(age: timedelta | None) -> str:
    seconds = int(age.total_seconds()) if age else 0
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
