"""Can the pod have the devices that its ResourceClaims ask for?"""

from collections import Counter
from collections.abc import Iterator, Sequence

from hami_mock.doctor.case import PodCase
from hami_mock.doctor.dra_fitting import Obstacle, Verdict, amount, judge, listed
from hami_mock.doctor.dra_found import CLAIMS, CLASSES, SLICES, TEMPLATES
from hami_mock.doctor.dra_objects import Ask, Request
from hami_mock.doctor.dra_selectors import can_be_read
from hami_mock.doctor.finding import Finding, error, note
from hami_mock.kit.similar import did_you_mean
from hami_mock.kit.text import cut

_ADVICE = {
    Obstacle.CLASS: "check that the driver of this class is running on a node: kubectl get "
    "resourceslices; `hami-mock doctor NODE` tells you more about a node",
    Obstacle.SELECTOR: "compare the selector with the attributes in kubectl get resourceslices "
    "-o yaml",
    Obstacle.SIZE: "ask for no more than the largest device has",
    Obstacle.TAINT: "repair the device (hami-mock's: ctl recover), or let the claim tolerate the "
    "taint",
    Obstacle.TAKEN: "ask for less, or let the pods of those claims end",
    Obstacle.COUNTERS: "ask for a smaller profile, or let the pods of those claims end",
}


def not_looked(case: PodCase) -> Iterator[Finding]:
    """What the pod's claims are judged by could be looked at."""
    if not case.pod.claims:
        return
    kinds = [SLICES, CLASSES, CLAIMS]
    kinds += [TEMPLATES] if any(each.template for each in case.pod.claims) else []
    lacks = dict.fromkeys(case.dra.lacks[kind] for kind in kinds if kind in case.dra.lacks)
    if lacks:
        told = f"its claims could only be checked in part: {'; '.join(lacks)}"
        advice = "allow list of resourceslices, resourceclaims, resourceclaimtemplates and "
        advice += "deviceclasses (resource.k8s.io), or give them all with -f"
        yield note("DRA", told, advice)


def claims(case: PodCase) -> Iterator[Finding]:
    """The pod's claims are there, and can be met."""
    found, pod = case.dra, case.pod
    if case.is_settled:
        return
    for own in pod.claims:
        if own.claim:
            name = f"{pod.namespace}/{own.claim}"
            claim = (found.claims or {}).get(name)
            if claim is not None and not claim.is_allocated:
                yield from _unmet(case, f"claim {name}", claim.requests)
            elif claim is None and found.claims is not None:
                yield _gone(f"claim {name}", own.template)
        elif own.template and not own.is_made:
            yield from _unmade(case, f"{pod.namespace}/{own.template}")


def _gone(where: str, template: str) -> Finding:
    if template:
        told = "the claim that was created for the pod no longer exists"
        advice = "delete the pod and create it again: its claim is created only once"
        return error(where, told, advice)
    told = "there is no such ResourceClaim, and the pod waits for it"
    return error(where, told, "create it in the pod's namespace, or correct resourceClaimName")


def _unmade(case: PodCase, name: str) -> Iterator[Finding]:
    """No claim has been made from a template yet; what it would ask for can be looked at."""
    templates = case.dra.templates
    if templates is not None and name not in templates:
        yield error(
            f"template {name}",
            "there is no such ResourceClaimTemplate, so no claim is created for the pod"
            + did_you_mean(name, templates),
            "create it in the pod's namespace, or correct resourceClaimTemplateName",
        )
        return
    if case.dra.claims is not None:
        yield note(
            f"template {name}",
            "no claim has been created from it for the pod yet",
            "kube-controller-manager creates it within seconds; if not, kubectl describe pod says "
            "why",
        )
    yield from _unmet(case, f"template {name}", (templates or {}).get(name, ()))


def extended(case: PodCase) -> Iterator[Finding]:
    """A resource that only a DeviceClass offers can be had by DRA."""
    if case.is_settled:
        return
    for name, count in case.pod.asks.items():
        if case.has_by_dra(name):
            cls = case.dra.class_for(name)
            assert cls is not None
            request = Request(name, (Ask(cls.name, count=count),))
            yield from _unmet(case, f"{name} (by DeviceClass {cls.name})", (request,))


def _unmet(case: PodCase, where: str, requests: Sequence[Request]) -> Iterator[Finding]:
    """Yield why requests can't be met."""
    found = case.dra
    classes = found.classes
    if classes is None:
        return
    for request in requests:
        missing = [way for way in request.ways if way.class_name not in classes]
        for way in missing:
            yield error(
                where,
                f"request {request.name}: there is no DeviceClass {way.class_name!r}"
                + did_you_mean(way.class_name, classes),
                f"there are {listed([*classes])}"
                if classes
                else "there are no classes at all: apply the driver's (hami-mock's are in "
                "components/dra/deviceclasses.yaml)",
            )
        if found.slices is None or missing:
            continue
        reasons = [_why_not(case, way) for way in request.ways]
        if reasons and all(reasons):
            told = "; or ".join(told for told, _ in filter(None, reasons))
            advice = next(advice for _, advice in filter(None, reasons))
            yield error(where, f"request {request.name}: {told}", advice)
        yield from _not_evaluated(case, where, request)


def _not_evaluated(case: PodCase, where: str, request: Request) -> Iterator[Finding]:
    classes = case.dra.classes or {}
    own = [each for way in request.ways for each in way.selectors]
    of_classes = [each for way in request.ways for each in classes[way.class_name].selectors]
    odd = dict.fromkeys(each for each in (*of_classes, *own) if not can_be_read(each))
    if odd:
        told = (
            f"request {request.name}: the doctor can't evaluate all of {listed([*map(cut, odd)])}"
        )
        yield note(where, f"{told}: devices that it would exclude count as fitting")


def _why_not(case: PodCase, ask: Ask) -> tuple[str, str] | None:
    """Return why a request can't be met so, and what to do; None if it can, for all we know."""
    found = case.dra
    node = case.node.node.name if case.node else ""
    verdicts = [judge(ask, device, found) for device in found.devices(node)]
    where = f"node {node}" if node else "any node"
    if not verdicts:
        return (
            f"there are no devices on {where}: no driver has published ResourceSlices",
            _ADVICE[Obstacle.CLASS],
        )
    fitting = _most_on_a_node(verdicts)
    if ask.count is not None and fitting >= ask.count:
        return None
    failed = [each for each in verdicts if each.obstacle is not None]
    best = max((each.obstacle for each in failed if each.obstacle), default=None)
    if ask.count is None:  # all that match must be free
        return None if best in (None, Obstacle.CLASS, Obstacle.SELECTOR) else _told(ask, failed)
    if fitting or best is None:
        reason = f"it asks for {ask.count} devices, and a node has at most {fitting} that fit"
        if best is None or best <= Obstacle.SELECTOR:
            return reason, f"ask for at most {fitting}, or split the pod"
        told, advice = _told(ask, failed)
        return f"{reason}; {told}", advice
    return _told(ask, failed)


def _most_on_a_node(verdicts: Sequence[Verdict]) -> int:
    fitting = Counter(each.device.node for each in verdicts if each.obstacle is None)
    everywhere = fitting.pop("", 0)
    return max(fitting.values(), default=0) + everywhere


def _told(ask: Ask, failed: Sequence[Verdict]) -> tuple[str, str]:
    """Return what is wrong with the devices that come closest, and with others that are like it."""
    by_obstacle: dict[Obstacle, list[Verdict]] = {}
    for each in failed:
        if each.obstacle is not None:
            by_obstacle.setdefault(each.obstacle, []).append(each)
    best = max(by_obstacle)
    told = [
        _words(ask, obstacle, by_obstacle[obstacle])
        for obstacle in sorted(by_obstacle, reverse=True)
        if obstacle is best or obstacle > Obstacle.SELECTOR
    ]
    return "; ".join(told), _ADVICE[best]


def _words(ask: Ask, obstacle: Obstacle, verdicts: Sequence[Verdict]) -> str:
    many = f"{len(verdicts)} device{'s' * (len(verdicts) > 1)}"
    asked = " and ".join(f"{amount(value)} {name}" for name, value in ask.capacity.items())
    match obstacle:
        case Obstacle.CLASS:
            drivers = listed([*dict.fromkeys(each.device.driver for each in verdicts)])
            return f"none of {many} ({drivers}) belongs to the DeviceClass {ask.class_name}"
        case Obstacle.SELECTOR:
            wanted = listed([*map(cut, ask.selectors)])
            return f"none of {many} of its class matches its selector: {wanted}"
        case Obstacle.SIZE:
            return f"it asks for {asked}; {_largest(ask, verdicts)}"
        case Obstacle.TAKEN if verdicts[0].device.is_shared:
            wanted = asked or "a whole device (it names no amount)"
            told = f"it asks for {wanted}, which isn't free now: "
            return told + listed([each.told for each in verdicts], "; ")
    return listed([each.told for each in verdicts], "; ")


def _largest(ask: Ask, verdicts: Sequence[Verdict]) -> str:
    """Return the largest device of each capacity of which there is too little."""
    told = []
    for name, wanted in ask.capacity.items():
        having = [each.device for each in verdicts if name in each.device.capacity]
        if not having:
            told.append(f"no device has the capacity {name}")
            continue
        largest = max(having, key=lambda device: device.capacity[name].largest)
        has = largest.capacity[name]
        if has.consumed(wanted) > has.largest:
            told.append(f"the largest device, {largest}, has {amount(has.largest)} {name}")
    return " and ".join(told) or listed([each.told for each in verdicts], "; ")
