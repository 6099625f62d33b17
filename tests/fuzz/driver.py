"""The driver: what setters may be asked, and the state file that an agent finds."""

import tempfile
from functools import cache
from pathlib import Path

from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.driver.cards import DriverCards
from hami_mock.views.driver.layout import HEADER, MAGIC, NO_INSTANCE, STATE_FILE, VERSION
from hami_mock.views.driver.messages import OPERATIONS, REPLY, REQUEST
from hami_mock.views.driver.root import driven
from hami_mock.views.driver.setters import Setters
from hami_mock.views.driver.state_file import StateFile
from tests.fuzz.target import Target, folder


def _node() -> tuple[NodeState, DriverCards]:
    """Two cards that can be cut, one of which is."""
    flags = {"vendors": "nvidia", "nvidia-model": "A100-SXM4-40GB", "node-name": "n1"}
    groups = {"nvidia-mig": "3g.20gb,1g.5gb", "device-plugins": "off"}
    state = NodeState(configured_node(load({**flags, **groups}), None))
    state.cut(state.node.cards[1], None)
    driver, cards = driven(state.node.cards)
    return state, DriverCards(driver, cards, "580.95.05", state)


@cache
def _set_up() -> tuple[NodeState, DriverCards, StateFile]:
    state, cards = _node()
    (place := folder() / "state").mkdir()
    file = StateFile(place)
    file.show(cards.shown())
    return state, cards, file


@cache
def _whole() -> bytes:
    """A file of the same cards."""
    _, cards = _node()
    with tempfile.TemporaryDirectory() as place:
        file = StateFile(Path(place))
        file.show(cards.shown())
        file.close()
        return Path(place, STATE_FILE).read_bytes()


def _request(data: bytes) -> None:
    """Ask for something, and show what came of it."""
    state, cards, file = _set_up()
    request = REQUEST.unpack(data[: REQUEST.size].ljust(REQUEST.size, b"\0"))
    card = cards.all[request["card"] % len(cards.all)]
    answer = Setters(state, cards).do(card, request)
    REPLY.pack({"magic": MAGIC, **answer})
    cards.keep_up(file)


def _found(data: bytes) -> None:
    """Begin with a file whose beginning is somebody else's, and go on with it."""
    (place := folder() / "found").mkdir(exist_ok=True)
    (place / STATE_FILE).write_bytes(data + _whole()[len(data) :])
    shown = _set_up()[1].shown()
    file = StateFile(place)
    file.show(shown)
    file.add_event(0, 8, 79)
    file.write(1, shown.lives[1])
    file.close()


def _requests() -> list[bytes]:
    usual = {"magic": MAGIC, "version": VERSION, "gpu_instance": 2, "profile": 19}
    anywhere = {"start": NO_INSTANCE, "size": NO_INSTANCE}
    return [
        REQUEST.pack({**usual, **anywhere, "operation": number, "values": [1, 0]})
        for number in OPERATIONS.values()
    ]


TARGETS = (
    Target("driver-requests", _request, (), _requests()),
    Target("driver-state", _found, (), [_whole()[: HEADER.offset("events", 2)]]),
)
