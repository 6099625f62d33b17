"""Any sequence of faults, recoveries, reloads, releases and registrations, against a small model.

The lists are those of the real streams; what they must say is worked out here from nothing but the
flags and the faults.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hami_mock.errors import UsageError
from hami_mock.faults.actions import Action, perform
from hami_mock.kubelet import wire
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node, Past, release
from hami_mock.node.state import NodeState
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from hami_mock.views.deviceplugin.counters import ResourceCounters
from hami_mock.views.deviceplugin.service import DevicePluginService
from tests.unit.builders import NODE

PREFIXES = {"nvidia": "nvidia.com/", "mlu": "cambricon.com/"}


@dataclass(frozen=True)
class Shape:
    """What the flags say of the node."""

    nvidia: int
    mlu: int
    split: int
    memory: int
    factor: int
    percent: int

    def flags(self) -> dict[str, str]:
        return {
            "node-name": NODE,
            "iluvatar-cards": "0",
            "ascend-cards": "0",
            "nvidia-cards": str(self.nvidia),
            "mlu-cards": str(self.mlu),
            "nvidia-split": str(self.split),
            "mlu-split": str(self.split),
            "nvidia-memory": str(self.memory),
            "nvidia-memory-factor": str(self.factor),
            "nvidia-core-scaling": str(self.percent / 100),
        }

    def per_card(self) -> dict[str, int]:
        """How many devices a card has of each resource that there is."""
        nvidia = {
            "nvidia.com/gpu": self.split,
            "nvidia.com/gpucores": self.percent,
            "nvidia.com/gpumem": self.memory // self.factor,
            "nvidia.com/gpumem-percentage": 100,
        }
        mlu = {"cambricon.com/vmlu": self.split}
        return (nvidia if self.nvidia else {}) | (mlu if self.mlu else {})

    def cards(self) -> set[str]:
        return {
            f"{vendor}/{index}"
            for vendor, count in (("nvidia", self.nvidia), ("mlu", self.mlu))
            for index in range(count)
        }

    def cards_of(self, resource: str) -> set[str]:
        return {c for c in self.cards() if resource.startswith(PREFIXES[c.partition("/")[0]])}


shapes = st.builds(
    Shape,
    nvidia=st.integers(0, 3),
    mlu=st.integers(0, 2),
    split=st.integers(1, 4),
    memory=st.integers(8, 30),
    factor=st.sampled_from([1, 1, 3]),
    percent=st.integers(1, 8),
)
some_cards = st.sampled_from(["nvidia/0", "nvidia/1", "nvidia/2", "mlu/0", "mlu/1"])
verbs = st.sampled_from(["fail", "fail", "lose", "lose", "degrade", "recover", "return"])
steps = st.one_of(
    st.tuples(st.just("reload"), shapes),
    st.tuples(st.just("act"), st.tuples(verbs, some_cards)),
    st.tuples(st.just("hold"), st.integers(0, 10_000)),
    st.tuples(st.just("end"), st.integers(0, 10_000)),
    st.tuples(st.just("release"), st.none()),
    st.tuples(st.just("register"), st.none()),
    st.tuples(st.just("clear"), st.none()),
)


class FakeStream:
    """The kubelet's end of ListAndWatch."""

    _send_initial_metadata_done = True

    def __init__(self) -> None:
        self.lists: list[bytes] = []
        self._stream = self

    async def recv_message(self) -> None:
        return

    async def send_data(self, frame: bytes) -> None:
        self.lists.append(frame[5:])


@dataclass
class Watched:
    """A resource that is registered, with its list stream."""

    service: DevicePluginService
    stream: FakeStream = field(default_factory=FakeStream)


async def turns() -> None:
    """Let the streams do what they will; nothing here waits for anything but the state."""
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


class World:
    """The real state and streams on one side, the model on the other."""

    def __init__(self, shape: Shape, tasks: anyio.abc.TaskGroup) -> None:
        self.shape = shape
        self.state = NodeState(configured_node(load(shape.flags()), None))
        self.failed: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.held: dict[str, dict[str, str]] = {}
        """resource → device → card, since a pod took it."""
        self.known: dict[str, dict[str, str]] = {}
        """resource → device → card, of all that must be in the list or on a lost card."""
        self._tasks = tasks
        self._watched: dict[str, Watched] = {}
        self._follow()

    async def do(self, step: str, what: Any) -> None:
        getattr(self, step)(what)
        self._follow()
        await turns()
        self.check()

    def reload(self, shape: Shape) -> None:
        node = self.state.node
        past = Past({resource.name: resource.devices for resource in node.resources})
        self.state.change(configured_node(load(shape.flags()), None, past))
        self.shape = shape
        for faults in (self.failed, self.lost):
            for card in set(faults) - shape.cards():
                del faults[card]
        for of in (self.held, self.known):
            # Without the resource there is no list to keep them in.
            for name in set(of) - set(shape.per_card()):
                del of[name]

    def act(self, what: tuple[str, str]) -> None:
        verb, card = what
        if card not in self.shape.cards():
            with pytest.raises(UsageError, match=f"there is no card '{card}' on this node"):
                perform(Action(verb, (card,)), self.state)
            return
        perform(Action(verb, (card,)), self.state)
        match verb:
            case "fail":
                self.failed[card] += 1
            case "lose":
                self.lost[card] += 1
            case "recover":
                self.failed.pop(card, None)
            case "return":
                self.lost.pop(card, None)

    def clear(self, _: None) -> None:
        if self.shape.cards():
            perform(Action("clear"), self.state)
        self.failed.clear()
        self.lost.clear()

    def hold(self, seed: int) -> None:
        """Let pods take some of the devices that a list shows as healthy."""
        names = sorted(self._watched)
        if not names:
            return
        name = names[seed % len(names)]
        seen = self.listed(name)
        free = [i for i, health in seen.items() if health == "Healthy"]
        for taken in free[seed % 4 :: 1 + seed % 3]:
            self.held.setdefault(name, {})[taken] = self.known[name][taken]

    def end(self, seed: int) -> None:
        """Let some pods end."""
        all_held = sorted((name, i) for name, of in self.held.items() for i in of)
        for name, device_id in all_held[seed % 4 :: 1 + seed % 3]:
            del self.held[name][device_id]

    def release(self, _: None) -> None:
        held = {i for of in self.held.values() for i in of}
        before = {r.name: self.active(r) for r in self.state.node.resources}
        self.state.change(release(self.state.node, held))
        for name, active in before.items():
            stay = active.keys() | self.held.get(name, {}).keys()
            self.known[name] = {i: c for i, c in self.known[name].items() if i in stay}

    def register(self, _: None) -> None:
        for watched in self._watched.values():
            watched.service.end_streams()
        self._watched.clear()

    def listed(self, name: str) -> dict[str, str]:
        pairs = list(wire.read_devices(self._watched[name].stream.lists[-1]))
        assert len(dict(pairs)) == len(pairs), "an ID stands twice"
        return dict(pairs)

    def active(self, resource: Resource) -> dict[str, str]:
        return {i: card.name for card in resource.cards for i in resource.devices.ids(card)}

    def check(self) -> None:
        wanted = self.shape.per_card()
        assert {resource.name for resource in self.state.node.resources} == set(wanted)
        everything: list[str] = []
        for resource in self.state.node.resources:
            self.check_resource(resource, wanted[resource.name])
            everything += self.known[resource.name]
        assert len(everything) == len(set(everything)), "two resources share an ID"

    def check_resource(self, resource: Resource, per_card: int) -> None:
        name = resource.name
        cards = self.shape.cards_of(name)
        active = self.active(resource)
        assert Counter(active.values()) == dict.fromkeys(cards, per_card)
        seen = self.listed(name)
        known = self.known.setdefault(name, {})
        for device_id, card in known.items():
            assert device_id in seen or card in self.lost, f"{device_id} has vanished"
            assert active.get(device_id, card) == card, f"{device_id} has moved"
        known |= active
        retired = known.keys() - active.keys()
        well = {i for i, c in active.items() if c not in self.failed and c not in self.lost}
        assert {i for i, health in seen.items() if health == "Healthy"} == well
        there = {i for i, card in active.items() if card not in self.lost}
        assert seen.keys() == there | retired
        assert sum(resource.devices.retired.values()) == len(retired)
        # What a pod holds is where it was when the pod got it.
        uuids = {card.uuid: card.name for card in self.state.node.cards} | self._gone
        for device_id, card in self.held.get(name, {}).items():
            uuid = resource.devices.card_of(device_id)
            assert uuid is not None
            assert uuids[uuid] == card

    @property
    def _gone(self) -> dict[str, str]:
        return {card.uuid: card.name for card in EVERY_CARD}

    def _follow(self) -> None:
        """Do as the plugins do: a stream for each resource that there is, and no other."""
        for name in set(self._watched) - set(self.state.resources):
            self._watched.pop(name).service.end_streams()
        for name, resource in self.state.resources.items():
            if name not in self._watched:
                watched = Watched(DevicePluginService(resource, self.state, ResourceCounters()))
                self._watched[name] = watched
                stream = cast(Any, watched.stream)
                self._tasks.start_soon(watched.service._list_and_watch, stream)

    def close(self) -> None:
        self.register(None)


def all_cards() -> Node:
    return configured_node(load(Shape(3, 2, 1, 10, 1, 1).flags()), None)


EVERY_CARD = all_cards().cards


@settings(max_examples=120)
@given(shape=shapes, sequence=st.lists(steps, min_size=1, max_size=25))
def test_the_sum_of_devices_and_the_card_of_each_are_always_right(
    shape: Shape, sequence: Sequence[tuple[str, Any]]
) -> None:
    async def play() -> None:
        async with anyio.create_task_group() as tasks:
            world = World(shape, tasks)
            await turns()
            world.check()
            for step, what in sequence:
                await world.do(step, what)
            world.close()

    anyio.run(play)


@given(shape=shapes, other=shapes)
def test_a_list_is_sent_only_when_it_changed(shape: Shape, other: Shape) -> None:
    async def play() -> None:
        async with anyio.create_task_group() as tasks:
            world = World(shape, tasks)
            await turns()
            world.check()
            for changed in (other, other, shape, shape):
                await world.do("reload", changed)
                await world.do("act", ("degrade", "nvidia/0"))
            for watched in world._watched.values():
                lists = watched.stream.lists
                assert all(a != b for a, b in pairwise(lists))
            world.close()

    anyio.run(play)
