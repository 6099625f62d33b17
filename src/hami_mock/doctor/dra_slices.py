"""A node's ResourceSlices: are they there, whole, and the only ones that offer its cards?"""

from collections.abc import Iterator, Sequence

from hami_mock.doctor.case import NodeCase, names_of
from hami_mock.doctor.dra_fitting import listed
from hami_mock.doctor.dra_found import CLASSES, SLICES, newest_of
from hami_mock.doctor.dra_objects import Device, DeviceClass, Slice
from hami_mock.doctor.dra_selectors import matches
from hami_mock.doctor.finding import Finding, Severity, error, note, warning
from hami_mock.kubelet.dra_gates import (
    CONSUMABLE,
    EXTENDED,
    GA,
    GATES,
    PARTITIONABLE,
    components,
)
from hami_mock.node.advice import COUNTED_TWICE, COUNTED_TWICE_REMEDY
from hami_mock.vendors import VENDORS
from hami_mock.vendors.dra import DraDriver, Profile, driver_of
from hami_mock.vendors.hami_vendor import HamiVendor

_UUID = "uuid"
_AFTERWARDS = {EXTENDED: "apply the DeviceClasses again"}
"""What is to be done about a gate once it is on, if not that the agent writes its slices again."""


def not_looked(case: NodeCase) -> Iterator[Finding]:
    """The slices of a node that should have some could be looked at."""
    why = case.dra.lacks.get(SLICES, "")
    if why and [*_agents(case)]:
        advice = "allow list of resourceslices (resource.k8s.io)"
        if case.dra.is_partial:
            advice = "add them: kubectl get resourceslices -o json"
        yield note("DRA", f"it couldn't be checked: {why}", advice)


def missing(case: NodeCase) -> Iterator[Finding]:
    """A node whose agent has --dra has slices of each profile."""
    if case.dra.slices is None:
        return
    there = {each.driver for each in _slices(case)}
    for pod, profile in _agents(case):
        drivers = [*_drivers(profile)]
        if not there & set(drivers):
            told = f"pod {pod} has DRA on ({profile}), but there is no ResourceSlice of "
            yield error(
                "ResourceSlices",
                f"{told}{' or '.join(drivers)} for this node: no claim gets a card of it",
                f"kubectl exec -n {pod.partition('/')[0]} {pod.partition('/')[2]} -- hami-mock ctl "
                "status says why; a node without cards for this profile needs none",
            )


def pools(case: NodeCase) -> Iterator[Finding]:
    """The scheduler uses a pool only when all slices of its newest generation are there."""
    for (driver, pool), slices in _pools(case):
        newest = newest_of(slices)
        count, generation = newest[0].count, newest[0].generation
        old = len(slices) - len(newest)
        left = f"; {old} of an older generation are ignored" if old else ""
        if len(newest) != count:
            yield error(
                driver,
                f"its pool {pool} is incomplete: {len(newest)} of {count} slices have its newest "
                f"generation {generation}{left}. The scheduler ignores the pool",
                "look again in a few seconds: the driver may be writing them; if it stays like "
                "this, see the driver's log",
            )
        elif old:
            yield warning(
                driver,
                f"its pool {pool} has slices of different generations: {len(newest)} of the "
                f"newest ({generation}){left}",
                "a running agent removes them; if there is none, delete those with the lower "
                "spec.pool.generation",
            )


def twins(case: NodeCase) -> Iterator[Finding]:
    """No card is offered by two drivers."""
    offers: dict[object, dict[str, str]] = {}
    for device in (each for one in _slices(case) for each in one.devices):
        uuid = device.attribute(device.driver, _UUID)
        if isinstance(uuid, str) and uuid:
            offers.setdefault(uuid, {})[device.driver] = device.name
    for uuid, names in offers.items():
        if len(names) > 1:
            told = " and ".join(f"{name} of {driver}" for driver, name in names.items())
            yield warning(
                "ResourceSlices",
                f"the card {uuid} is offered twice, as {told}: both drivers can hand it out",
                "let one driver offer it: --dra takes one profile for a maker's cards, and a real "
                "driver beside hami-mock counts too",
            )


def plugins(case: NodeCase) -> Iterator[Finding]:
    """Device plugins don't offer the same cards."""
    drivers = {each.driver for each in _slices(case) if each.devices}
    for driver in sorted(drivers):
        names = dict.fromkeys(names_of(vendor)[0] for vendor in _vendors(driver))
        counted = [f"{case.allocatable(name)} {name}" for name in names if case.allocatable(name)]
        if counted:
            told = f"{COUNTED_TWICE}: the node has {listed(counted)} allocatable too"
            yield warning(driver, told, COUNTED_TWICE_REMEDY)


def gates(case: NodeCase) -> Iterator[Finding]:
    """No gate is off, as its agent says, or as it shows: the API server drops what needs one."""
    told = dict.fromkeys((driver, gate) for driver, off in case.gates_off.items() for gate in off)
    signs = dict.fromkeys(told, "as its agent says") | dict(_signs(case))
    for (driver, gate), sign in signs.items():
        without = GATES[gate].without if gate in GATES else "devices lack what needs it"
        yield warning(
            driver,
            f"the feature gate {gate} is off ({sign}): {without}",
            f"turn it on for {components()}, and {_AFTERWARDS.get(gate, 'restart the agent')}",
        )


def _signs(case: NodeCase) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield driver and gate where slices lack what the driver would publish, and what they lack."""
    ours = {name for _, profile in _agents(case) for name in _drivers(profile)}
    # A real example driver shares nothing by itself.
    ours |= {*_drivers(Profile.HAMI)}
    for each in _slices(case):
        driver = _known().get(each.driver)
        if driver is None or driver.name not in ours:
            continue
        shared = [
            device.name
            for device in each.devices
            if not device.is_shared and driver.shares(device.attributes)
        ]
        cut = [
            device.name
            for device in each.devices
            if not device.consumes and driver.counts(device.attributes, device.capacity)
        ]
        if shared:
            sign = f"{listed(shared)} came without allowMultipleAllocations"
            yield (each.driver, CONSUMABLE), sign
        if cut:
            yield (each.driver, PARTITIONABLE), f"{listed(cut)} came without consumesCounters"
        lost = [own.name for own in _classes_of(case, each) if own.applied and not own.resource]
        if lost and not _has_extended(case):
            sign = f"DeviceClass {listed(lost)} came without its extendedResourceName"
            yield (each.driver, EXTENDED), sign


def extended(case: NodeCase) -> Iterator[Finding]:
    """Where no class of ours stands for a resource, the gate for that may be off."""
    known = (case.dra.classes or {}).values()
    if not case.version or _has_extended(case) or any(each.applied for each in known):
        return
    for driver in dict.fromkeys(
        each.driver for each in _slices(case) if any(o.is_ours for o in _classes_of(case, each))
    ):
        yield note(
            driver,
            f"no DeviceClass has an extendedResourceName: {GATES[EXTENDED].without}. The feature "
            f"gate {EXTENDED} is off, or no class was given such a name",
            f"if pods should get cards without claims, turn it on for {components()}, and "
            f"{_AFTERWARDS[EXTENDED]}",
        )


def _has_extended(case: NodeCase) -> bool:
    """Tell whether the gate is on for sure: it can't be off, or a class has kept such a name."""
    if case.version and GATES[EXTENDED].default(case.version) == GA:
        return True
    return any(each.resource for each in (case.dra.classes or {}).values())


def taints(case: NodeCase) -> Iterator[Finding]:
    for device in (each for one in _slices(case) for each in one.devices):
        for taint in device.taints:
            yield warning(
                device.driver,
                f"{device.name} is tainted: {taint} ({taint.effect}), so claims that don't "
                "tolerate it don't get the device",
                "a driver taints unhealthy cards; `hami-mock ctl recover` repairs hami-mock's",
            )


def classes(case: NodeCase) -> Iterator[Finding]:
    """Some DeviceClass is for the devices of each driver."""
    known = case.dra.classes
    if known is None or (case.dra.is_partial and CLASSES in case.dra.lacks):
        return
    for (driver, _), slices in _pools(case):
        devices = [device for each in slices for device in each.devices]
        if devices and not any(_is_for(each, devices) for each in known.values()):
            yield warning(
                driver,
                "no DeviceClass is for its devices, so no claim can ask for them",
                "apply the driver's classes (hami-mock's: components/dra/deviceclasses.yaml, or "
                "the chart's value dra.deviceClasses)",
            )


CHECKS = (not_looked, missing, pools, twins, plugins, gates, extended, taints, classes)


def _classes_of(case: NodeCase, of: Slice) -> list[DeviceClass]:
    return [each for each in (case.dra.classes or {}).values() if _is_for(each, of.devices)]


def _is_for(each: DeviceClass, devices: Sequence[Device]) -> bool:
    """Tell whether a class may be for devices that are much alike."""
    some = (*devices[:1], *devices[-1:])
    return any(matches(each.selectors, device) is not False for device in some)


def well(case: NodeCase, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield a line for each driver with which nothing is wrong."""
    wrong = {each.where for each in findings if each.severity is not Severity.NOTE}
    totals: dict[str, tuple[int, int]] = {}
    for each in _slices(case):
        devices, slices = totals.get(each.driver, (0, 0))
        totals[each.driver] = devices + len(each.devices), slices + 1
    for driver, (devices, slices) in totals.items():
        if driver not in wrong and "ResourceSlices" not in wrong:
            told = f"{devices} device{'s' * (devices != 1)} in {slices} ResourceSlice"
            yield Finding(Severity.OK, driver, f"{told}{'s' * (slices != 1)}")


def has_slices(case: NodeCase) -> bool:
    return bool(_slices(case))


def _slices(case: NodeCase) -> list[Slice]:
    return [each for each in case.dra.slices or () if each.node == case.node.name != ""]


def _pools(case: NodeCase) -> Iterator[tuple[tuple[str, str], Sequence[Slice]]]:
    for key, slices in case.dra.pools.items():
        if any(each.node == case.node.name != "" for each in slices):
            yield key, slices


def _agents(case: NodeCase) -> Iterator[tuple[str, Profile]]:
    """Yield the pods on the node that say --dra, and each profile."""
    for pod in case.own:
        for name in pod.options.get("dra", "").split(","):
            if name.strip() in [*Profile]:
                yield pod.full_name, Profile(name.strip())


def _drivers(profile: Profile) -> Iterator[str]:
    found = (driver_of(vendor, profile) for vendor in VENDORS)
    return iter(dict.fromkeys(driver.name for driver in found if driver))


def _known() -> dict[str, DraDriver]:
    found = (driver_of(vendor, profile) for vendor in VENDORS for profile in Profile)
    return {driver.name: driver for driver in found if driver}


def _vendors(driver: str) -> Iterator[HamiVendor]:
    """Yield those whose cards a driver of hami-mock's offers."""
    for vendor in VENDORS:
        own = (driver_of(vendor, profile) for profile in Profile)
        if any(each and each.name == driver for each in own):
            yield from vendor.chips.values()
