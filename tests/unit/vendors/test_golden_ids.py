"""Device IDs that pods may hold: golden_ids.json was written by the version before the rooms."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hami_mock.node.sizing import Node
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node

GOLDEN: dict[str, Any] = json.loads(
    Path(__file__).with_name("golden_ids.json").read_text(encoding="utf-8")
)


def node_with(prefix: str) -> Node:
    """A node with two cards of one vendor, and all that HAMi has names for."""
    flags = {f"{each}-cards": "2" if each == prefix else "0" for each in GOLDEN}
    # Two of AMD's default model have more memory than a list has room for.
    flags |= {"node-name": "golden", "hami": "on", "amd-model": "MI210"}
    return configured_node(load(flags), None)


def ids_of(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cards": [card.name for card in node.cards],
        "uuids": [card.uuid for card in node.cards],
    }
    for resource in node.resources:
        ids = [device_id for card in resource.cards for device_id in resource.devices.ids(card)]
        digest = hashlib.sha256("\n".join(ids).encode()).hexdigest()
        found[resource.name] = {"count": len(ids), "first": ids[0], "last": ids[-1], "all": digest}
    return found


@pytest.mark.parametrize("prefix", GOLDEN)
def test_a_device_of_yesterday_is_the_same_device_today(prefix: str) -> None:
    assert ids_of(node_with(prefix)) == GOLDEN[prefix]
