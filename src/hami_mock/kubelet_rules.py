"""What the kubelet bears: its message limit, and from 1.36 on the price of many units. Pure.

The figures were measured on real kubelets of 1.35 and 1.36; docs/performance.md has the table.
"""

import re

from hami_mock.wire import MESSAGE_LIMIT

Version = tuple[int, int]
"""Major and minor version of Kubernetes."""

# From this version on (feature gate ResourceHealthStatus) a pod's status lists each device that
# the pod holds, and a restarted kubelet compares all listed devices with all allocated ones.
_STATUS_LISTS_DEVICES: Version = (1, 36)

# The API server takes no larger request, and the kubelet sends a pod's status in one.
_STATUS_PATCH_LIMIT = 3 * 1024 * 1024
_STATUS_BYTES_PER_DEVICE = 47

_RESTART_SECONDS = 4.7
_RESTART_SECONDS_PER_PAIR = 6.5e-8
# A kubelet that is away for longer when it restarts with everything allocated is away too long.
_LONGEST_RESTART_SECONDS = 10.0

LARGEST_POD = _STATUS_PATCH_LIMIT // _STATUS_BYTES_PER_DEVICE
"""How many units a pod can hold and still start, where a pod's status lists them."""


def parse_version(text: str) -> Version:
    """Return (1, 36) for "v1.36.4" and its like. Raises ValueError for what is no version."""
    found = re.match(r"v?(\d+)\.(\d+)", text)
    if found is None:
        raise ValueError(f"{text!r} is no version of Kubernetes")
    return int(found[1]), int(found[2])


def fits(list_size: int) -> bool:
    """Tell whether the kubelet accepts a list of that many bytes."""
    return list_size <= MESSAGE_LIMIT


def restart_seconds(units: int) -> float:
    """Return how long a kubelet that lists devices needs to be back with all units allocated."""
    return _RESTART_SECONDS + _RESTART_SECONDS_PER_PAIR * units**2


def dear(units: int, version: Version | None) -> bool:
    """Tell whether so many units in one resource are legal but unwise.

    A version that isn't known counts as the newest.
    """
    if version is not None and version < _STATUS_LISTS_DEVICES:
        return False
    return units > LARGEST_POD or restart_seconds(units) > _LONGEST_RESTART_SECONDS
