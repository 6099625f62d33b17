"""`hami-mock fleet`: each of its commands is a module of its own, as those of hami-mock are."""

COMMANDS = {
    "up": "create the nodes of a file's pools, and keep them as they should be",
    "status": "show the pools: nodes, ready, cards, allocated, faults, and the writes a second",
    "top": "watch the fleet live in a terminal: every node a tile",
    "scale": "change how many nodes pools have",
    "scenario": "play or check a timeline of faults over the fleet",
    "play": "create the pods of a recorded trace at the recorded times, and delete them afterwards",
    "doctor": "explain what is wrong with the fleet, its API server or KWOK",
    "down": "delete exactly what the fleet has created",
    "export-kwok": "write Node YAML and KWOK Stages, for a fleet that needs no hami-mock process",
    "demo": "bring up a control plane and a fleet in a sandbox, with pods and a rack that fails",
}
"""Beside them there are the verbs of `ctl`, over nodes, racks, zones and pools."""
