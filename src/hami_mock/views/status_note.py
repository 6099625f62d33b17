"""The annotation that says which resources in the Node's status are the agent's. Pure.

It is written with the status, in one patch: who reads it later, another agent or the doctor, can
tell what the node should show, and what a dead agent has left.
"""

import json
from collections.abc import Collection, Mapping

ANNOTATION = "hami-mock.io/units-in-status"


def write(amounts: Mapping[str, int], confirmed: Collection[str]) -> str | None:
    """Return the text for these amounts; None for no amounts.

    Those that aren't confirmed are null: they stand in the capacity alone, because the kubelet may
    still take them for a device plugin's.
    """
    noted = {name: count if name in confirmed else None for name, count in amounts.items()}
    return json.dumps(noted, sort_keys=True) if noted else None


def read(annotations: Mapping[str, str]) -> dict[str, int | None]:
    """Return what an agent has noted. What is no note says nothing, and so does what is no amount.

    Only of extended resources: nobody shall make an agent take a node's memory away.
    """
    try:
        noted = json.loads(annotations.get(ANNOTATION, "{}"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(noted, dict):
        return {}
    return {name: count for name, count in noted.items() if "/" in name and _is_amount(count)}


def _is_amount(value: object) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value is None or (is_number and 0 <= value < 2**63)  # type: ignore[operator]
