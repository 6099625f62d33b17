"""What setters of the driver change: what a card is cut into, its power limit, its modes."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from hami_mock.node.cards import Card
from hami_mock.node.instances import Cut, Cutter, InUse, NoInstance, NoRoom
from hami_mock.node.state import NodeState
from hami_mock.vendors.physics import traits
from hami_mock.views.driver.cards import DriverCards
from hami_mock.views.driver.layout import NO_INSTANCE
from hami_mock.views.driver.messages import OPERATIONS

RESULTS: Final = {
    "DONE": 0,
    "INVALID_ARGUMENT": 2,
    "NOT_SUPPORTED": 3,
    "NO_PERMISSION": 4,
    "NOT_FOUND": 6,
    "GPU_IS_LOST": 15,
    "IN_USE": 19,
    "INSUFFICIENT_RESOURCES": 23,
}
"""What a setter is answered: codes of NVML."""
_Request = Mapping[str, Any]
_Answer = dict[str, int]
_FAILURES: Mapping[type[Exception], str] = {
    NoInstance: "NOT_FOUND",
    NoRoom: "INSUFFICIENT_RESOURCES",
    InUse: "IN_USE",
}
_MODES = {
    "SET_PERSISTENCE_MODE": ("persistence_mode",),
    "SET_COMPUTE_MODE": ("compute_mode",),
    "SET_ECC_MODE": ("ecc_mode_pending",),
    "SET_ACCOUNTING_MODE": ("accounting_mode",),
    "SET_GPU_LOCKED_CLOCKS": ("gpu_locked_least", "gpu_locked_most"),
    "SET_MEMORY_LOCKED_CLOCKS": ("memory_locked_least", "memory_locked_most"),
    "SET_APPLICATION_CLOCKS": ("memory_clock_set", "graphics_clock_set"),
}
"""Operations that only show what was set, and the fields that show it."""
_LARGEST = 2**32 - 1
"""Fields have no room for more."""


class Setters:
    """Does what setters ask. `cards` shows what nobody else decides on."""

    def __init__(self, state: NodeState, cards: DriverCards) -> None:
        self._state = state
        self._cards = cards
        self._operations: dict[int, Callable[[Card, _Request], _Answer]] = {
            OPERATIONS["SET_MIG_MODE"]: self._set_mig_mode,
            OPERATIONS["CREATE_GPU_INSTANCE"]: self._create,
            OPERATIONS["DESTROY_GPU_INSTANCE"]: self._destroy,
            OPERATIONS["CREATE_COMPUTE_INSTANCE"]: self._create_compute,
            OPERATIONS["DESTROY_COMPUTE_INSTANCE"]: self._destroy_compute,
            OPERATIONS["SET_POWER_LIMIT"]: self._set_power_limit,
            OPERATIONS["CLEAR_ECC_ERRORS"]: self._clear_ecc_errors,
        }

    def do(self, card: Card, request: _Request) -> _Answer:
        """Do what is asked of a card; return the reply's fields."""
        if max(request["values"]) > _LARGEST:
            return _reply("INVALID_ARGUMENT")
        for name, fields in _MODES.items():
            if request["operation"] == OPERATIONS[name]:
                self._cards.set_fields(card, dict(zip(fields, request["values"], strict=False)))
                return _reply("DONE")
        operation = self._operations.get(request["operation"])
        if operation is None:
            return _reply("NOT_SUPPORTED")
        try:
            return operation(card, request)
        except tuple(_FAILURES) as error:
            return _reply(_FAILURES[type(error)])

    def _set_mig_mode(self, card: Card, request: _Request) -> _Answer:
        cut = self._state.cut_of(card)
        wanted = bool(request["values"][0])
        _cutter(card)
        if not wanted and self._state.held_instances(card):
            _refuse(card)
        if not wanted and cut is not None:
            self._state.cut(card, None)
        elif wanted and cut is None:
            self._state.cut(card, Cut())
        return _reply("DONE")

    def _create(self, card: Card, request: _Request) -> _Answer:
        cutter = _cutter(card)
        start = _place(request["start"])
        profile, own = cutter.profile(request["profile"]), self._cut(card)
        made = cutter.make(own, profile, start, beside=self._state.cut_of(card))
        self._state.cut(card, made.cut)
        return {"gpu_instance": made.id}

    def _destroy(self, card: Card, request: _Request) -> _Answer:
        number = request["gpu_instance"]
        held = {each.gpu_instance for each in self._state.held_instances(card)}
        if number in held:
            _refuse(card)
        self._state.cut(card, _cutter(card).remove(self._cut(card), number))
        return _reply("DONE")

    def _create_compute(self, card: Card, request: _Request) -> _Answer:
        slices = self._cards.driver.compute_slices(request["profile"])
        if not slices:
            return _reply("INVALID_ARGUMENT")
        number, start = request["gpu_instance"], _place(request["start"])
        made = _cutter(card).make_compute(self._cut(card), number, slices, start)
        self._state.cut(card, made.cut)
        return {"gpu_instance": number, "compute_instance": made.id}

    def _destroy_compute(self, card: Card, request: _Request) -> _Answer:
        number, compute = request["gpu_instance"], request["compute_instance"]
        instances = self._state.held_instances(card)
        held = {(each.gpu_instance, each.compute_instance) for each in instances}
        if (number, compute) in held:
            _refuse(card)
        self._state.cut(card, _cutter(card).remove_compute(self._cut(card), number, compute))
        return _reply("DONE")

    def _set_power_limit(self, card: Card, request: _Request) -> _Answer:
        watts = request["values"][0] / 1000
        if not 0 < watts <= traits(card.vendor.maker, card.model).power_limit:
            return _reply("INVALID_ARGUMENT")
        self._state.limit_power(card, watts)
        return _reply("DONE")

    def _clear_ecc_errors(self, card: Card, request: _Request) -> _Answer:
        self._cards.clear_errors(card, ever=bool(request["values"][0]))
        return _reply("DONE")

    def _cut(self, card: Card) -> Cut:
        """Return what was cut out here of a card in MIG mode: HAMi's instances are its pods'."""
        if self._state.cut_of(card) is None:
            raise NoInstance(f"{card.name} is not in MIG mode")
        return self._state.cuts.get(card.uuid, Cut())


def _cutter(card: Card) -> Cutter:
    return Cutter(card.vendor, card.model, card.uuid)


def _place(start: int) -> int | None:
    return None if start == NO_INSTANCE else start


def _refuse(card: Card) -> None:
    raise InUse(f"containers hold instances of {card.name}")


def _reply(result: str) -> _Answer:
    return {"result": RESULTS[result]}
