"""The node whose memory resource both servers offer: eight cards, as many units as wanted."""

from dataclasses import dataclass

from hami_mock.kubelet import wire
from hami_mock.kubelet.limits import fits
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node

CARDS = 8
RESOURCE = "nvidia.com/gpumem"


@dataclass(frozen=True)
class Setting:
    """A node and the one resource of it that is measured."""

    node: Node
    resource: Resource

    @property
    def flipped(self) -> str:
        """The UUID of the card whose health changes."""
        return self.resource.cards[0].uuid

    @property
    def unhealthy_word(self) -> str:
        """What stands for unhealthy in this list: both servers send the same bytes."""
        is_roomy = fits(self.resource.list_size({self.flipped}))
        return (wire.UNHEALTHY if is_roomy else wire.UNKNOWN).decode()


def setting(devices: int) -> Setting:
    """Make a node with so many units of memory."""
    flags = {"nvidia-cards": CARDS, "nvidia-memory": devices // CARDS}
    others = {f"{vendor}-cards": 0 for vendor in ("mlu", "iluvatar", "ascend")}
    text = {name: str(value) for name, value in {**flags, **others}.items()}
    node = configured_node(load({"node-name": "bench", **text}), None)
    return Setting(node, next(r for r in node.resources if r.name == RESOURCE))
