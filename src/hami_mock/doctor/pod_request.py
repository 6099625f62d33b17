"""Can anybody give the pod what it asks for?"""

from collections.abc import Iterator, Mapping

from hami_mock.doctor.case import PodCase, names_of
from hami_mock.doctor.finding import Finding, error, warning
from hami_mock.hami.assignment import ASSIGNED_NODE
from hami_mock.kubelet.limits import LARGEST_POD, too_many
from hami_mock.vendors.hami_vendor import HamiVendor

_DEFAULT_SCHEDULERS = ("", "default-scheduler")
_WEBHOOK = "hami.io/webhook"


def scheduler(case: PodCase) -> Iterator[Finding]:
    pod = case.pod
    if not case.asked or pod.scheduler == case.scheduler or ASSIGNED_NODE in pod.annotations:
        return
    where = f"pod {pod.full_name}"
    if pod.scheduler not in _DEFAULT_SCHEDULERS:
        told = f"the scheduler {pod.scheduler!r} places it, not {case.scheduler!r}"
        yield warning(where, told, "if that is HAMi's scheduler, name it with --scheduler-name")
        return
    told = f"its scheduler isn't {case.scheduler!r}, so HAMi assigns it no card"
    advice = f"set schedulerName: {case.scheduler}, or find out why HAMi's webhook skipped the pod"
    if pod.labels.get(_WEBHOOK) == "ignore":
        advice = f"set schedulerName: {case.scheduler}, or remove the label {_WEBHOOK}=ignore"
    yield error(where, told, advice)


def count_is_asked(case: PodCase) -> Iterator[Finding]:
    """Who asks for memory or cores asks for a card too."""
    for vendor in case.asked:
        names = vendor.resources
        parts = set(names_of(vendor)) - {names.count}
        for container in case.pod.containers:
            asked = sorted(parts & {name for name, amount in container.asks.items() if amount})
            if asked and not container.asks.get(names.count):
                yield error(
                    f"container {container.name}",
                    f"it asks for {' and '.join(asked)}, but not for {names.count}: HAMi gives it "
                    "no card",
                    f"add {names.count}: 1 to its limits (HAMi's webhook does so only for NVIDIA, "
                    "with defaultGPUNum)",
                )


def cards_suffice(case: PodCase) -> Iterator[Finding]:
    """A container asks for no more cards than there are: its devices are all on different ones."""
    for vendor in case.asked:
        cards = case.cards(vendor)
        if not cards or any(card.mode == "mig" for card in cards):
            continue
        for container, count in case.containers_asking(vendor):
            if count > len(cards):
                yield error(
                    f"container {container.name}",
                    f"it asks for {count} {vendor.resources.count}, each on a different card, "
                    f"but the node has {len(cards)} cards",
                    f"ask for at most {len(cards)}, or use another node",
                )


def card_is_large_enough(case: PodCase) -> Iterator[Finding]:
    """There is a card with as much memory as a container asks for on each of its cards."""
    for vendor in case.asked:
        names, cards = vendor.resources, case.cards(vendor)
        largest = max((card.memory for card in cards), default=0)
        for container in case.pod.containers if cards else ():
            asked = container.asks.get(names.memory, 0) * names.memory_unit
            if asked > largest:
                unit = f" x {names.memory_unit} MiB" if names.memory_unit > 1 else " MiB"
                yield error(
                    f"container {container.name}",
                    f"it asks for {container.asks[names.memory]}{unit} of memory on a card, but "
                    f"the largest card here has {largest} MiB",
                    f"ask for at most {largest // names.memory_unit} {names.memory}",
                )


def percents(case: PodCase) -> Iterator[Finding]:
    for vendor in case.asked:
        names = vendor.resources
        for container in case.pod.containers:
            where = f"container {container.name}"
            if container.asks.get(names.percentage, 0) > 100:
                told = f"{names.percentage} is above 100: HAMi's webhook refuses the pod"
                yield error(where, told, "ask for 1 to 100 percent of a card's memory")
            if _is_above_100(vendor, container.asks):
                told = f"{names.cores} is above 100, and HAMi treats it as 100"
                yield warning(where, told, "ask for 1 to 100 percent of each card")


def _is_above_100(vendor: HamiVendor, asks: Mapping[str, int]) -> bool:
    names = vendor.resources
    is_sum = vendor.scheduling.sums_cores and asks.get(names.count, 0) > 1
    return names.cores_per_card == 100 and asks.get(names.cores, 0) > 100 and not is_sum


def node_suffices(case: PodCase) -> Iterator[Finding]:
    if case.node is None or case.is_settled:
        return
    used = [other.asks for other in case.node.others(case.pod)]
    for name, asked in case.pod.asks.items():
        allocatable = case.node.node.allocatable.get(name)
        if "/" not in name or (allocatable is None and _may_be_absent(case, name)):
            continue
        if case.has_by_dra(name):
            continue  # `dra_claims` looks at the devices
        taken = sum(asks.get(name, 0) for asks in used)
        if asked <= (allocatable or 0) - taken:
            continue
        told = f"the pod asks for {asked}; node {case.node.node.name} has "
        told += "no such resource" if allocatable is None else f"{allocatable} allocatable"
        told += f", and other pods hold {taken}" if taken else ""
        advice = "ask for less, let other pods end, or make the node offer more"
        if case.node.in_status.get(name, 0) is None:
            advice = "wait until the kubelet lets go of it (see the node), or use another node"
        yield error(name, told, advice)


def _may_be_absent(case: PodCase, name: str) -> bool:
    """HAMi's scheduler and the kubelet pass over memory and cores that no plugin registers."""
    parts = {n for vendor in case.asked for n in names_of(vendor)[1:]}
    return name in parts and case.pod.scheduler == case.scheduler


def units(case: PodCase) -> Iterator[Finding]:
    """From 1.36 on a pod's status must hold all of its devices."""
    version = case.node.version if case.node else None
    counted = case.node.in_status if case.node else {}
    devices = {name: n for name, n in case.pod.asks.items() if "/" in name and name not in counted}
    total = sum(devices.values())
    if total > LARGEST_POD and too_many([total], version):
        yield error(
            f"pod {case.pod.full_name}",
            f"it asks for {total} devices, and from Kubernetes 1.36 on a pod with more than "
            f"{LARGEST_POD} stays Pending: its status is larger than the API server takes",
            "let hami-mock keep units in the node's status (--units auto), or use coarser ones "
            "(--VENDOR-memory-factor, and the same memoryFactor in HAMi's configuration)",
        )
