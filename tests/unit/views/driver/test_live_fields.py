"""Every live field of the state file is written by the agent, or is known to be always 0."""

from typing import Any

from hami_mock.faults.actions import Action, perform
from hami_mock.node.cards import CardGroup, make_cards
from hami_mock.node.instances import Cutter
from hami_mock.node.readings import Throttle
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.vendors import catalog
from hami_mock.views.driver.card_records import ALWAYS_ZERO
from hami_mock.views.driver.layout import LIVE
from hami_mock.views.driver.messages import OPERATIONS
from hami_mock.views.driver.setters import Setters
from tests.makers import NVIDIA
from tests.unit.views.driver.reading import driver_cards
from tests.unit.views.driver.test_cards import hold
from tests.unit.views.exporters.rig import reading

MODES = ("PERSISTENCE_MODE", "COMPUTE_MODE", "ECC_MODE", "ACCOUNTING_MODE", "GPU_LOCKED_CLOCKS")
CLOCKS = ("MEMORY_LOCKED_CLOCKS", "APPLICATION_CLOCKS")
EVERYTHING: dict[str, Any] = {
    "throttles": frozenset({Throttle.POWER_CAP}),
    "held": {frozenset(Throttle): 1.5},
    "last_xid": 63,
    "ecc_errors": 2,
    "corrected_errors": 3,
    "memory_clock": 405,
    "nvlink_bytes": 1 << 30,
    "fan": 40,
}
ROWS: dict[str, Any] = {
    "remapped_correctable": 1,
    "remapped_uncorrectable": 1,
    "remap_failed": True,
}
PAGES: dict[str, Any] = {"retired_correctable": 1, "retired_uncorrectable": 1}


def seen(model_name: str, verb: str = "fail", cut: str = "", **damage: Any) -> dict[str, Any]:
    """Return the live part of a card to which all has happened that can happen to its model."""
    model = catalog.find(NVIDIA.maker, model_name)
    assert model is not None
    # A card's links lead somewhere, or are down.
    links = (frozenset({0, 1}),) if cut else ()
    cards = make_cards("n", NVIDIA, [CardGroup(model, model.memory, (0, 0), links)])
    state = NodeState(Node("n", cards, ()))
    shown = driver_cards(state)
    card = cards[0]
    if cut:
        state.cut(card, Cutter(NVIDIA, model, card.uuid).cut_into([cut]))
    hold(state, ("ns", "pod", "main"), 0)
    state.readings = {each.uuid: reading(each, **{**EVERYTHING, **damage}) for each in cards}
    perform(Action(verb, (card.uuid,)), state)
    setters = Setters(state, shown)
    for name in (*MODES, *CLOCKS):
        asked = {"operation": OPERATIONS[f"SET_{name}"], "values": (1, 1)}
        assert setters.do(card, asked) == {"result": 0}
    return LIVE.unpack(bytes(8) + shown.shown().lives[0])


def test_every_field_is_written_or_named() -> None:
    found = [
        seen("A100-SXM4-40GB", cut="1g.5gb", **ROWS),
        seen("V100-SXM2-32GB", **PAGES),
        seen("T4", "lose", **PAGES),
    ]
    never = {name for name in LIVE.fields if not any(_says(each[name]) for each in found)}
    # The file's writer counts the sequence.
    assert never == {"sequence", *ALWAYS_ZERO}


def _says(value: Any) -> bool:
    """Tell whether a field has anything but zeros in it."""
    if isinstance(value, dict):
        return any(map(_says, value.values()))
    return any(map(_says, value)) if isinstance(value, list | tuple) else bool(value)
