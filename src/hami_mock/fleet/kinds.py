"""What can be done to a fleet: the verbs of `ctl`, and those for nodes as a whole. Pure."""

from hami_mock.node.fault import Verb
from hami_mock.node.fault_kinds import DROP, EVERY_VERB, REFUSED

_WITHOUT_KUBELET = (REFUSED, DROP)
"""What happens between a plugin and its kubelet: there is neither on the nodes of a fleet."""
FLEET_VERBS: dict[str, Verb] = {
    name: verb for name, verb in EVERY_VERB.items() if verb not in _WITHOUT_KUBELET
}
