"""What the objects of a fleet are marked with: who comes back finds them by it."""

FLEET = "hami-mock.io/fleet"
"""Label: whose node it is, by the fleet's name."""
POOL = "hami-mock.io/pool"
"""Label: the pool that the node is of."""
RACK = "hami-mock.io/rack"
"""Label: the rack that the node is in."""
FAULTS = "hami-mock.io/faults"
"""Annotation: what is wrong with the node on purpose, so that it outlives the fleet's process."""
MADE = "hami-mock.io/made"
"""Annotation: which labels, annotations and resources are the fleet's, to be taken away again."""
DURATION = "hami-mock.io/duration"
"""Annotation of a pod: how long it runs before it succeeds, such as 90s or 2h."""
KWOK_NODE = "kwok.x-k8s.io/node"
"""Annotation by which KWOK knows its nodes."""
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
MACHINE = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    # What kind of kubelet it has, for selectors: KWOK's own nodes say so too.
    "type": "kwok",
}
"""Labels that all nodes have."""
