"""The demo's fleet and pods fit together, however few nodes there are."""

from collections.abc import Mapping
from typing import Any

import pytest

from hami_mock.cli.fleet.demo_story import demo_pod, pools_text, rack_of
from hami_mock.fleet.fleet import Fleet
from hami_mock.settings.settings import load_pools


def _fleet(nodes: int) -> Fleet:
    return Fleet("demo", load_pools("demo.yaml", text=pools_text(nodes)))


def _asks(pod: Mapping[str, Any]) -> dict[str, int]:
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    return {name: int(amount) for name, amount in limits.items()}


@pytest.mark.parametrize("nodes", [20, 60, 1000])
def test_what_the_story_names_is_there(nodes: int) -> None:
    fleet = _fleet(nodes)
    assert len(fleet.members) == nodes
    assert len(fleet.find(["rack=a100-r2"])) == rack_of(nodes)
    assert fleet.find(["l4-?:nvidia/3"])


def test_every_pod_fits_on_a_node() -> None:
    fleet = _fleet(20)
    states = map(fleet.state, fleet.members.values())
    offers = [{of.name: of.count for of in state.node.resources} for state in states]
    for number in range(100):
        asks = _asks(demo_pod(number, shortest=20))
        fits = any(all(of.get(name, 0) >= count for name, count in asks.items()) for of in offers)
        assert fits, f"no node has {asks}"
