"""Who holds a part of a card, and how much of it at most."""

from collections.abc import Callable, Mapping, Sequence

from hami_mock.node.cards import Card
from hami_mock.node.holders import Holding, Load
from hami_mock.node.readings import Usage
from hami_mock.node.state import NodeState
from hami_mock.vendors import Role


def usages(state: NodeState) -> Callable[[Card], Sequence[Usage]]:
    """Return what tells the containers on a card: the state's own answer if it has one."""
    if told := getattr(state, "usages", None):
        return told  # type: ignore[no-any-return]
    holdings = state.holdings()
    return lambda card: [
        _usage(state, card, holding) for holding in holdings.get(card.uuid, ()) if holding.container
    ]


def _usage(state: NodeState, card: Card, holding: Holding) -> Usage:
    assert holding.container is not None
    memory, cores = card.memory, 100
    held: Mapping[Role, int] = {
        state.resources[name].offer.role: count * state.resources[name].factor
        for name, count in holding.devices.items()
    }
    if Role.MEMORY in held:
        memory = held[Role.MEMORY]
    elif Role.PERCENTAGE in held:
        memory = card.memory * held[Role.PERCENTAGE] // 100
    if Role.CORES in held:
        cores = held[Role.CORES]
    return Usage(
        holding.container,
        Load(),
        min(memory, card.memory),
        min(cores, 100),
        held.get(Role.SLOTS, 0),
    )
