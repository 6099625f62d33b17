"""What the kubelet bears: its message limit, and from 1.36 on the price of many units. Pure.

The figures were measured on real kubelets of 1.35 to 1.37; docs/performance.md has the table.
"""

import re
from collections.abc import Collection

from hami_mock.kubelet.wire import MESSAGE_LIMIT

Version = tuple[int, int]
"""Major and minor version of Kubernetes."""

# From this version on (feature gate ResourceHealthStatus) a pod's status lists each device that
# the pod holds, and a restarted kubelet looks up each listed device among all allocated ones.
_STATUS_LISTS_DEVICES: Version = (1, 36)
# From this one on only among those of the same resource.
_LOOKS_IN_ONE_RESOURCE: Version = (1, 37)

LARGEST_POD = 78_600
"""How many units a pod can hold and still start: its status must fit the API server's 3 MiB."""

# A restart takes this long, and so much for each pair of a listed and an allocated device that is
# looked at: meanwhile the kubelet tells the API server nothing.
_RESTART_SECONDS = 1.0
_RESTART_SECONDS_PER_PAIR = 0.2e-6
_LONGEST_RESTART_SECONDS = 10.0


def parse_version(text: str) -> Version:
    """Return (1, 36) for "v1.36.4" and its like. Raises ValueError for what is no version."""
    found = re.match(r"v?(\d+)\.(\d+)", text)
    if found is None:
        raise ValueError(f"{text!r} is not a version of Kubernetes")
    return int(found[1]), int(found[2])


def fits(list_size: int) -> bool:
    return list_size <= MESSAGE_LIMIT


def restart_seconds(counts: Collection[int], version: Version | None) -> float:
    """Return how long a kubelet is away that restarts with all devices allocated.

    - counts: how many devices each resource of the node has
    - version: one that isn't known counts as the one that is away longest
    """
    in_one = version is not None and version >= _LOOKS_IN_ONE_RESOURCE
    pairs = sum(count**2 for count in counts) if in_one else sum(counts) ** 2
    return _RESTART_SECONDS + _RESTART_SECONDS_PER_PAIR * pairs


def lists_devices(version: Version | None) -> bool:
    """Tell whether a kubelet writes each device that a pod holds into the pod's status.

    A version that isn't known counts as the newest.
    """
    return version is None or version >= _STATUS_LISTS_DEVICES


def too_many(counts: Collection[int], version: Version | None) -> bool:
    """Tell whether so many devices on a node, by resource, are legal but unwise."""
    is_long = restart_seconds(counts, version) > _LONGEST_RESTART_SECONDS
    return lists_devices(version) and is_long
