"""How much of a resource in the Node's status there is to have: what the Node should say. Pure.

The kubelet and the scheduler subtract what pods ask for, and know nothing of cards. So what pods
have of a card that has failed or is lost must stay in the sum: else it would be missing on the
healthy cards, and a kubelet that restarts would throw out pods that no longer fit.
"""

from typing import TYPE_CHECKING

from hami_mock.kubelet.holder import Container
from hami_mock.node.resources import Resource

if TYPE_CHECKING:
    from hami_mock.node.state import NodeState


def amount(resource: Resource, state: "NodeState") -> int:
    """Return the units of usable cards, and those of others that pods have."""
    counts = resource.devices.counts
    usable = sum(counts[c.uuid] for c in resource.cards if state.health(c).is_usable)
    pods = [pod for pod in state.pods.values() if not pod.is_over]
    asked = sum(pod.asks_for(resource.name) for pod in pods)
    # Anybody may name a node in a pod and ask for more than it has: the kubelet shall refuse that.
    begun = sum(pod.asks_for(resource.name) for pod in pods if pod.is_admitted)
    asked = max(begun, min(asked, resource.count))
    return max(usable + _on_unusable_cards(resource, state), asked)


def _on_unusable_cards(resource: Resource, state: "NodeState") -> int:
    """Return what containers ask for that are on such cards; of several cards, each has a part."""
    cards: dict[Container, list[bool]] = {}
    unusable = {card.uuid for card in resource.cards if not state.health(card).is_usable}
    if not unusable:
        return 0
    asked: dict[Container, int] = {}
    for uuid, holdings in state.holdings().items():
        for holding in holdings:
            if holding.container is not None and resource.name in holding.devices:
                cards.setdefault(holding.container, []).append(uuid in unusable)
                asked[holding.container] = holding.devices[resource.name]
    return sum(count * sum(cards[who]) // len(cards[who]) for who, count in asked.items())
