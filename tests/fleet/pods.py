"""Pods that ask for cards."""

from typing import Any


def pod(name: str, wants: dict[str, int], *, duration: str = "", **spec: Any) -> dict[str, Any]:
    """A pod that asks for so much; with a duration, KWOK lets it succeed after that."""
    annotations = {"hami-mock.io/duration": duration} if duration else {}
    limits = {name: str(amount) for name, amount in wants.items()}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": name.rpartition("-")[0]},
            "annotations": annotations,
        },
        "spec": {"containers": [container], "restartPolicy": "Never", **spec},
    }
