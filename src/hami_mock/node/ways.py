"""Which way units reach the scheduler: as devices of a plugin, or as numbers in the Node's status.

A plugin lists every unit, so there can't be more than its message holds, and from 1.36 on a kubelet
that restarts pays for each pair of them. A number in the status costs nothing, but somebody must be
allowed to write it. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hami_mock.kubelet.limits import Version, lists_devices


class Units(StrEnum):
    """What the user wants."""

    PLUGIN = "plugin"
    STATUS = "status"
    AUTO = "auto"


class Which(StrEnum):
    """Which units stand in the Node's status."""

    NONE = "none"
    KEPT = "kept"
    NEEDED = "needed"
    ALL = "all"


@dataclass(frozen=True)
class Policy:
    """Which units stand in the Node's status, and why the others don't; of `ALL`, why they do.

    `KEPT` is for when nobody knows whether they may: those that stood there stay, since pods may
    have them, and those go there that have no other place.
    """

    which: Which = Which.NONE
    why: str = ""


@dataclass(frozen=True)
class Permission:
    """Whether the API server lets the agent write its node's status; `refusal` says why not.

    `is_known` is False where it gave no answer. What is allowed then is only assumed to be.
    """

    is_allowed: bool = False
    refusal: str = ""
    is_known: bool = True

    def after(self, before: "Permission") -> "Permission":
        """Return what holds now: a server that is away has taken no right back."""
        return before if before.is_allowed and not self.is_known else self


NO_PERMISSION = Permission()


def policy(units: Units, permission: Permission, *, hami: bool) -> Policy:
    match units:
        case Units.PLUGIN:
            return Policy(Which.NONE, "you chose --units plugin")
        case Units.STATUS:
            return Policy(Which.ALL, "you chose --units status")
        case Units.AUTO if not permission.is_allowed:
            which = Which.NONE if permission.is_known else Which.KEPT
            return Policy(which, permission.refusal)
        case Units.AUTO if hami:
            return Policy(
                Which.ALL, "with HAMi: its scheduler decides which card's units a pod gets"
            )
        case Units.AUTO:
            return Policy(Which.NEEDED)


def needed(
    counts: Mapping[str, int], unfit: Mapping[str, int], version: Version | None
) -> dict[str, str]:
    """Return the resources whose units belong into the status, with the reason.

    `counts` has the units of each resource and `unfit` those whose list is too long, with the
    bytes that it has at the least. Where the kubelet's version makes units costly, all of them go:
    a resource whose way depended on its count would have to move when that changes, which takes
    minutes.
    """
    if lists_devices(version):
        kubelet = ".".join(map(str, version)) if version else "1.36 or newer"
        why = f"kubelet {kubelet} writes every device that a pod holds into the pod's status"
        return dict.fromkeys(counts, why)
    return without_room(counts, unfit)


def without_room(counts: Mapping[str, int], unfit: Mapping[str, int]) -> dict[str, str]:
    """Return the resources whose lists have no room for their units, and say so of each."""
    return {
        name: f"{counts[name]} devices would need a list of at least {size} bytes, more than the "
        "kubelet takes"
        for name, size in unfit.items()
    }


def harmless(version: Version | None) -> str:
    """Say of units whose list has room why a plugin may have them."""
    return f"harmless on kubelet {'.'.join(map(str, version))}" if version else ""
