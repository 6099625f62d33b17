"""A node with work on it, all of it invented: for what shows readings and who holds what."""

import math
from collections.abc import Mapping

from hami_mock.kubelet.holder import Container, Holder
from hami_mock.node.cards import Card
from hami_mock.node.holders import Load
from hami_mock.node.readings import Reading, Throttle
from hami_mock.node.state import NodeState

Work = Mapping[Container, Mapping[str, tuple[int, int]]]
"""For each container: the cards that it holds by name, with how busy it keeps them in percent, and
the MiB that it uses."""

WORK: Work = {
    ("ml", "train-resnet-0", "main"): {"nvidia/0": (62, 14_336), "nvidia/1": (58, 14_336)},
    ("ml", "train-resnet-0", "logger"): {"nvidia/0": (3, 512)},
    ("serving", "llm-7d9c5b7c4-x2x9k", "server"): {"nvidia/1": (21, 9_216), "mlu/0": (35, 4_096)},
    ("default", "notebook", "jupyter"): {"iluvatar/1": (0, 300)},
}
_RESERVED = 479
_IDLE_POWER = 50.0
_IDLE_DEGREES = 30.0


def invent(state: NodeState, moment: float = 0.0, work: Work = WORK) -> None:
    """Let containers hold slots of cards and be busy; it varies a little with the moment."""
    cards = {card.name: card for card in state.node.cards}
    held = {who: {n: at for n, at in on.items() if n in cards} for who, on in work.items()}
    state.holders.name(
        Holder(who, _slots(state, number, [cards[name] for name in on]))
        for number, (who, on) in enumerate(held.items())
    )
    state.loads = {
        (cards[name].uuid, who): Load(max(0, round(busy + 4 * _wave(moment, busy))), memory)
        for who, on in held.items()
        for name, (busy, memory) in on.items()
    }
    state.readings = {card.uuid: reading(card, state.load(card), moment) for card in cards.values()}
    state.load_changes.send()


def reading(card: Card, load: Load, moment: float = 0.0) -> Reading:
    limit = float(card.model.power or 300)
    power = _IDLE_POWER + (limit - _IDLE_POWER) * load.busy / 100 + 3 * _wave(moment, card.index)
    free = card.memory - load.memory - _RESERVED
    return Reading(
        busy=float(load.busy),
        memory_busy=load.busy / 10,
        memory_used=load.memory,
        memory_reserved=_RESERVED,
        memory_free=free,
        power=power,
        power_limit=limit,
        energy=int(power * moment * 1000),
        temperature=_IDLE_DEGREES + power * 0.1,
        memory_temperature=_IDLE_DEGREES + power * 0.12,
        fan=30,
        sm_clock=1380 if load.busy else 345,
        memory_clock=877,
        throttles=frozenset() if load.busy else frozenset({Throttle.IDLE}),
    )


def _wave(moment: float, phase: float) -> float:
    return math.sin(moment / 5 + phase) + math.sin(moment / 1.7 + phase)


def _slots(state: NodeState, number: int, cards: list[Card]) -> dict[str, list[str]]:
    """Return a slot of each card, by resource: another one for each container, if there is."""
    found: dict[str, list[str]] = {}
    for card in cards:
        resource = next(r for r in state.node.resources if card in r.cards and r.count <= 1000)
        of_card = [*resource.devices.ids(card)]
        found.setdefault(resource.name, []).append(of_card[number % len(of_card)])
    return found
