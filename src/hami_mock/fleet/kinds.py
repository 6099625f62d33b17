"""What can be done to a fleet: the verbs of `ctl`, and those for nodes as a whole. Pure."""

from collections.abc import Mapping
from typing import Any

from hami_mock.errors import UsageError
from hami_mock.node.fault import Call, Verb
from hami_mock.node.fault_kinds import DROP, EVERY_VERB, REFUSED

_WITHOUT_KUBELET = (REFUSED, DROP)
"""What happens between a plugin and its kubelet: there is neither on the nodes of a fleet."""
FLEET_VERBS: dict[str, Verb] = {
    name: verb for name, verb in EVERY_VERB.items() if verb not in _WITHOUT_KUBELET
}


def refuse_call(parameters: Mapping[str, Any]) -> None:
    """Raise UsageError if a verb is about a call that nobody makes on the nodes of a fleet."""
    if parameters.get("call") is Call.PRESTART:
        raise UsageError(
            f"{Call.PRESTART}: a kubelet calls it before a container starts, and a fleet's nodes "
            f"have none: use {Call.ALLOCATE}"
        )
