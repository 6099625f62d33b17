"""Kubeconfigs to read."""

import json
from pathlib import Path
from typing import Any

import anyio

from hami_mock.cluster.access import Access
from hami_mock.cluster.kubeconfig import Kubeconfig

Part = dict[str, Any]


def document(cluster: Part | None = None, user: Part | None = None) -> Part:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://api:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }


def load(folder: Path, cluster: Part | None = None, user: Part | None = None) -> Access:
    """Write a kubeconfig and read it."""
    path = folder / "config"
    path.write_text(json.dumps(document(cluster, user)))
    return anyio.run(Kubeconfig([path]).load)
