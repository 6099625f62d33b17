"""Claims that have their devices: can the pod that waits for them use them where it is?"""

from collections.abc import Iterator

from hami_mock.doctor.case import PodCase
from hami_mock.doctor.dra_fitting import listed
from hami_mock.doctor.dra_objects import Claim
from hami_mock.doctor.finding import Finding, error, note, warning

_MOST_USERS = 256
"""How many pods the API server lets a claim be reserved for."""


def allocated(case: PodCase) -> Iterator[Finding]:
    """What a claim was allocated is where the pod is, is still there, and has room for the pod."""
    pod, known = case.pod, case.dra.claims or {}
    own = [known.get(f"{pod.namespace}/{each.claim}") for each in pod.claims if each.claim]
    for claim in filter(None, own):
        where = f"claim {claim.full_name}"
        if claim.is_ending and not pod.has_ended:
            told = "it is being deleted, and will be gone once no pod uses it: no new pod gets it"
            yield warning(where, told, "create the claim and the pod again")
        if case.is_settled or not claim.is_allocated:
            continue
        yield from _elsewhere(case, claim, where)
        yield from _devices(case, claim, where)
        if pod.name not in claim.users and len(claim.users) >= _MOST_USERS:
            told = f"it is reserved for {len(claim.users)} pods, and no more can share a claim"
            yield error(where, told, "let other pods end, or use another claim")
        if pod.node_name and not pod.is_prepared:
            drivers = listed([*dict.fromkeys(each.device[0] for each in claim.results)])
            yield warning(
                where,
                f"it is allocated, but the kubelet hasn't made the pod ready: {drivers} may not "
                "have prepared it",
                f"kubectl describe pod {pod.name} -n {pod.namespace} shows the driver's error "
                "(FailedPrepareDynamicResources); hami-mock ctl status on the node shows which "
                "claims it has prepared",
            )


def _elsewhere(case: PodCase, claim: Claim, where: str) -> Iterator[Finding]:
    if not claim.nodes:
        return
    nodes = listed(claim.nodes)
    place = case.pod.node_name or (case.node.node.name if case.node else "")
    if place and place not in claim.nodes:
        yield error(
            where,
            f"its devices are on node {nodes}, and the pod is for {place}: it can't use them there",
            "let the pod run on that node, or give it a claim of its own (from a template)",
        )
    elif not place:
        told = f"its devices are on node {nodes}: the pod can run only there"
        yield note(where, told, "if it should run elsewhere, give it a claim of its own")


def _devices(case: PodCase, claim: Claim, where: str) -> Iterator[Finding]:
    found = case.dra
    if found.slices is None:
        return
    devices = {each.id: each for each in found.devices()}
    for result in claim.results:
        driver, pool, name = result.device
        device = devices.get(result.device)
        if device is None:
            yield error(
                where,
                f"it was allocated {name} of {driver} in the pool {pool}, which is no longer "
                "in any ResourceSlice: it can't be prepared",
                "check that the driver is running on that node; if the device is gone for good, "
                "delete the pod",
            )
        elif device.taints:
            taints = listed([str(taint) for taint in device.taints])
            yield warning(where, f"its device {device} is tainted: {taints}", "repair the device")
