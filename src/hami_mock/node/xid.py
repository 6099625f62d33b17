"""Xids: the numbers of NVIDIA's driver errors, and which of them make a card unhealthy. Pure."""

import re

from hami_mock.kit.values import or_text, whole

XID = or_text(whole(1, 99_999))

APPLICATION_ERRORS = frozenset({13, 31, 43, 45, 68, 109})
"""Caused by a program, not by the card: counted, but the card stays healthy, as with NVIDIA's own
device plugin."""

_LOSING = frozenset({79})

_MEANINGS = {
    13: "graphics engine exception",
    31: "GPU memory page fault",
    32: "invalid or corrupted push buffer stream",
    38: "driver firmware error",
    43: "GPU stopped processing",
    45: "preemptive cleanup, due to previous errors",
    46: "GPU stopped processing",
    48: "double bit ECC error",
    61: "internal micro-controller breakpoint or warning",
    62: "internal micro-controller halt",
    63: "row remapping or page retirement recorded",
    64: "row remapping or page retirement failed to be recorded",
    68: "video processor exception",
    69: "graphics engine class error",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    92: "high single bit ECC error rate",
    94: "contained ECC error",
    95: "uncontained ECC error",
    109: "context switch timeout",
    119: "GSP RPC timeout",
    120: "GSP error",
    121: "C2C link error",
    140: "unrecovered ECC error",
    143: "GPU initialization failure",
}


def meaning_of(xid: int) -> str:
    """Return what a Xid means, 0 being none; empty if it isn't known."""
    return _MEANINGS.get(xid, "" if xid else "no error")


def named_in(text: str) -> set[int]:
    """Return the Xids that a text speaks of, such as the reason of a fault."""
    return set(map(int, re.findall(r"\bxid (\d{1,5})\b", text, re.IGNORECASE)))


def loses_card(reason: str) -> bool:
    """Tell whether a driver doesn't reach a card any more that is unhealthy for this reason."""
    return not _LOSING.isdisjoint(named_in(reason))


def describe(xid: int) -> str:
    meaning = _MEANINGS.get(xid)
    return f"Xid {xid} ({meaning})" if meaning else f"Xid {xid}"
