"""A ResourceClaim, as the API server has it → the devices that it gets on this node. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from hami_mock.errors import HamiMockError
from hami_mock.kit.quantities import quantity
from hami_mock.kit.text import cut
from hami_mock.node.claims import ClaimedDevice, ClaimKey, PreparedClaim
from hami_mock.sources.annotated.node_object import part, text
from hami_mock.vendors.dra import MI
from hami_mock.views.dra.devices import Offered, Pool, instance

_MOST_RESULTS = 32
"""The API server allows no more."""
_WHOLE = 100


class ClaimError(HamiMockError):
    """The kubelet must act: this claim can't be prepared; it is asked for again."""


def prepare(
    claim: Mapping[str, Any], uid: str, pool: Pool, others: Iterable[PreparedClaim] = ()
) -> PreparedClaim:
    """Return what a claim gets of a driver's devices.

    `others` are the claims that have theirs. Raises ClaimError.
    """
    driver, devices = pool.driver, pool.devices
    metadata = part(claim, "metadata")
    if text(metadata, "uid") != uid:
        raise ClaimError(
            f"its UID is {cut(text(metadata, 'uid'))} now, not {cut(uid)}: it was deleted and "
            "made again"
        )
    allocation = part(part(claim, "status"), "allocation")
    if not allocation:
        raise ClaimError("the scheduler has allocated nothing to it")
    results = part(allocation, "devices").get("results")
    rows = results[:_MOST_RESULTS] if isinstance(results, list) else []
    own = [row for row in rows if isinstance(row, Mapping) and text(row, "driver") == driver.name]
    if not own:
        raise ClaimError(f"nothing in it is allocated by {driver.name}")
    taken = {
        (each.card, unit)
        for other in others
        if other.uid != uid
        for each in other.devices
        for unit in _units(each, devices)
    }
    found = tuple(_device(row, pool) for row in own)
    for each in found:
        if taken & {(each.card, unit) for unit in _units(each, devices)}:
            raise ClaimError(f"{each.name} overlaps an instance that another claim has")
    name = f"{text(metadata, 'namespace')}/{text(metadata, 'name')}"
    return PreparedClaim(ClaimKey(driver.name, name), uid, found)


def _device(row: Mapping[str, Any], pool: Pool) -> ClaimedDevice:
    name = text(row, "device")
    if text(row, "pool") != pool.name:
        raise ClaimError(f"{cut(name)} is in the pool {cut(text(row, 'pool'))}, not in {pool.name}")
    offered = pool.devices.get(name)
    if offered is None:
        raise ClaimError(f"there is no device {cut(name)} any more")
    if offered.is_lost:
        raise ClaimError(f"the card of {name} is lost")
    card, made = offered.card, instance(offered.card, offered.device.place)
    consumed = part(row, "consumedCapacity")
    memory = quantity(consumed.get("memory"))
    cores = quantity(consumed.get(pool.driver.cores))
    share = text(row, "shareID")
    return ClaimedDevice(
        # Of one with alternatives, "gpu/large": containers and the kubelet know the first part.
        request=text(row, "request").partition("/")[0],
        pool=pool.name,
        name=name,
        card=card.uuid,
        memory=made.memory if made else card.memory if memory is None else -(-memory // MI),
        cores=made.cores if made else _WHOLE if cores is None else min(cores, _WHOLE),
        share=share,
        instance=made,
        is_admin=row.get("adminAccess") is True,
    )


def _units(device: ClaimedDevice, devices: Mapping[str, Offered]) -> Iterable[int]:
    """Return the units of its card's memory that an instance has."""
    offered = devices.get(device.name)
    if offered is None or offered.device.place is None or device.is_admin:
        return ()
    place = offered.device.place
    return range(place.start, place.start + place.profile.units)
