"""Calls that are slow, hang or fail on purpose."""

from collections.abc import Callable, Collection, Iterable

import anyio

from hami_mock.kit.broadcast import Broadcast
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import SLOW


async def held_up(
    faults: Iterable[Fault], current: Callable[[], Collection[Fault]], changes: Broadcast
) -> Fault | None:
    """Be as late as faults of a call say; return the first that lets it fail.

    `current` are those that last still: one that ends meanwhile holds up nobody any more.
    """
    for fault in faults:
        if fault.seconds:
            with anyio.move_on_after(fault.seconds):
                await changes.wait_until(lambda fault=fault: fault not in current())  # type: ignore[misc]
        if fault.kind is not SLOW and fault in current():
            return fault
    return None
