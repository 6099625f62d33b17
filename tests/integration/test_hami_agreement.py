"""An agent for HAMi, between a kubelet and an API server: both must mean the same card."""

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import grpc
import pytest

from hami_mock.agent import Agent
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.faults.actions import Action, perform
from hami_mock.hami.assignment import BIND_PHASE
from hami_mock.hami.lock import NodeLock
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.pod_resources import FakePodResources, pod_resources
from tests.unit.builders import NODE
from tests.unit.views.hami.rig import pod, segment

GPU = "nvidia.com/gpu"
LOCK = "hami.io/mutex.lock"
FLAGS = {
    "node-name": NODE,
    "http-listen": "",
    "hami": "on",
    "nvidia-split": "2",
    "nvidia-memory": "100",
    "mlu-cards": "0",
    "iluvatar-cards": "0",
    "ascend-cards": "0",
}


class Refused(Exception):
    """The kubelet has no slots left."""


class Machine:
    """What a kubelet does with slots and HAMi's scheduler with cards, around an agent."""

    def __init__(
        self, kubelet: GrpcioKubelet, server: FakeApiServer, held: FakePodResources, agent: Agent
    ) -> None:
        self.kubelet = kubelet
        self.server = server
        self.agent = agent
        self.held = held
        self.a, self.b = (card.uuid for card in agent.node.cards)

    def bind(self, name: str, card: str) -> None:
        bound = pod(name, vgpu=segment(card))
        asking = {"name": "main", "resources": {"limits": {GPU: "1"}}}
        bound["spec"]["containers"] = [asking]
        self.server.put("pods", bound)
        lock = NodeLock(datetime.now(UTC), "default", name).encode()
        self.server.annotate("nodes", NODE, {LOCK: lock})

    async def admit(self, name: str, card: str, *, slot_of: str = "") -> str:
        """Bind a pod and let the kubelet take it; return its slot, maybe one of that card."""
        self.bind(name, card)
        devices = self.kubelet.devices(GPU)
        taken = {slot for each in self.held.pods.values() for slot in each[GPU]}
        free = sorted({slot for slot, health in devices.items() if health == "Healthy"} - taken)
        if not free:
            self.phase(name, "Failed")
            raise Refused
        plugin = self.kubelet.plugin(GPU)
        (slot,) = (
            [slot for slot in free if slot.startswith(slot_of)][:1]
            if slot_of
            else await anyio.to_thread.run_sync(plugin.prefer, free, 1)
        )
        await anyio.to_thread.run_sync(plugin.allocate, [slot])
        self.held.pods["default", name, "main"] = {GPU: [slot]}
        self.phase(name, "Running")
        return str(slot)

    def end(self, name: str) -> None:
        """Delete a pod that runs."""
        del self.held.pods["default", name, "main"]
        self.server.remove("pods", name, "default")

    def phase(self, name: str, phase: str) -> None:
        thing = self.server.objects["pods", "default", name]
        status = {"phase": phase, "reason": "UnexpectedAdmissionError" * (phase == "Failed")}
        self.server.put("pods", {**thing, "status": status})

    async def start(self, name: str) -> None:
        """Start, or restart, a pod's container."""
        slots = self.held.pods["default", name, "main"][GPU]
        await anyio.to_thread.run_sync(self.kubelet.plugin(GPU).pre_start, slots)

    async def see(self, *, healthy: set[str], unhealthy: set[str]) -> None:
        """Wait until the kubelet has a list of these slots, and no others."""
        wanted = dict.fromkeys(healthy, "Healthy") | dict.fromkeys(unhealthy, "Unhealthy")
        await anyio.to_thread.run_sync(
            self.kubelet.wait_until, lambda: self.kubelet.devices(GPU) == wanted, str(wanted)
        )

    @property
    def slots(self) -> set[str]:
        return {f"{card}-{number}" for card in (self.a, self.b) for number in range(2)}

    def do(self, verb: str, card: str) -> None:
        perform(Action(verb, (card,), {}), self.agent.state)

    def annotations(self, name: str) -> dict[str, str]:
        return self.server.annotations("pods", name, "default")


Scenario = Callable[[Machine], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path, kubelet: GrpcioKubelet) -> Callable[..., None]:
    """Play scenarios, each with an agent of its own, one after the other on one machine."""

    @asynccontextmanager
    async def machine(server: FakeApiServer, kubernetes: Kubernetes, held: FakePodResources) -> Any:
        registered = len(kubelet.registrations)
        sockets = {"socket-dir": str(kubelet.folder), "pod-resources-socket": str(tmp_path / "p")}
        settings = load({**FLAGS, **sockets})
        agent = Agent(settings, configured_node(settings, None), {}, kubernetes)
        async with anyio.create_task_group() as tasks:
            await tasks.start(agent.run)
            await anyio.to_thread.run_sync(
                kubelet.wait_until,
                lambda: any(
                    each.resource == GPU and each.lists
                    for each in kubelet.registrations[registered:]
                ),
            )
            yield Machine(kubelet, server, held, agent)
            tasks.cancel_scope.cancel()

    async def main(*scenarios: Scenario) -> None:
        with anyio.fail_after(120), pod_resources(tmp_path / "p") as held:
            async with api_server(tmp_path) as server, Kubernetes() as kubernetes:
                server.put("nodes", {"metadata": {"name": NODE, "annotations": {}}})
                for scenario in scenarios:
                    async with machine(server, kubernetes, held) as around:
                        await scenario(around)

    return lambda *scenarios: anyio.run(main, *scenarios)


def test_the_kubelet_takes_slots_of_the_card_that_hami_means(play: Callable[..., None]) -> None:
    async def scenario(machine: Machine) -> None:
        # By itself it would take the emptiest card, of two such the first.
        for name, card in (("p1", machine.b), ("p2", machine.b), ("p3", machine.a)):
            assert (await machine.admit(name, card)).startswith(card)
        assert LOCK not in machine.server.annotations("nodes", NODE)

    play(scenario)


def test_all_look_at_the_card_that_hami_means_and_not_at_the_slot(
    play: Callable[..., None],
) -> None:
    slots: dict[str, str] = {}

    async def fails(machine: Machine) -> None:
        a, b = machine.a, machine.b
        # The pod on b has a slot of a's, and that on a one of b's.
        of_a = {f"{a}-0", f"{a}-1"} - {slots["on-b"]} | {slots["on-a"]}
        of_b = machine.slots - of_a
        machine.do("fail", a)
        await machine.see(healthy=of_b, unhealthy=of_a)
        await machine.start("on-b")
        with pytest.raises(grpc.RpcError, match=f"the assigned card {a} is unhealthy"):
            await machine.start("on-a")
        machine.do("recover", a)
        await machine.see(healthy=machine.slots, unhealthy=set())
        machine.do("lose", b)
        await machine.see(healthy=of_a, unhealthy=set())
        await machine.start("on-a")
        with pytest.raises(grpc.RpcError, match=f"the assigned card {b} is unhealthy"):
            await machine.start("on-b")
        machine.do("recover", b)

    async def first(machine: Machine) -> None:
        slots["on-a"] = await machine.admit("on-a", machine.a, slot_of=machine.b)
        slots["on-b"] = await machine.admit("on-b", machine.b, slot_of=machine.a)
        await machine.start("on-a")
        # At once, and when the kubelet has named them.
        for _ in range(2):
            told = (await machine.agent.status())["cards"]
            found = {card["name"]: len(card["holders"]) for card in told}
            assert found == {"nvidia/0": 1, "nvidia/1": 1}
        await fails(machine)

    async def after_a_restart(machine: Machine) -> None:
        state = machine.agent.state
        await state.pod_changes.wait_until(lambda: len(state.pods) == 2)
        await state.holders.changes.wait_until(lambda: len(state.holders.known) == 2)
        await fails(machine)

    play(first, after_a_restart)


def test_the_kubelet_has_room_for_all_pods_that_hami_has_room_for(
    play: Callable[..., None],
) -> None:
    async def scenario(machine: Machine) -> None:
        a, b = machine.a, machine.b
        on_a = await machine.admit("on-a", a, slot_of=b)
        machine.do("fail", a)
        # One slot of b's is taken, so one of a's stands in for it.
        await machine.see(healthy={f"{a}-1", f"{b}-1"}, unhealthy={on_a, f"{a}-0"})
        for name in ("one", "two"):
            await machine.admit(name, b)
            await machine.start(name)
        with pytest.raises(Refused):
            await machine.admit("three", b)
        # A pod goes; which slots are well from now on doesn't matter, but how many are.
        machine.end("one")
        await machine.admit("four", b)

    play(scenario)


def test_slots_are_their_own_cards_again_when_the_pod_is_gone(play: Callable[..., None]) -> None:
    async def scenario(machine: Machine) -> None:
        a, b, holders = machine.a, machine.b, machine.agent.state.holders
        on_a = await machine.admit("on-a", a, slot_of=b)
        named = ("default", "on-a", "main")
        await holders.changes.wait_until(lambda: [h.container for h in holders.known] == [named])
        machine.do("fail", a)
        await machine.see(healthy={f"{a}-1", f"{b}-1"}, unhealthy={on_a, f"{a}-0"})
        machine.end("on-a")
        own = {f"{b}-0", f"{b}-1"}
        await machine.see(healthy=own, unhealthy=machine.slots - own)

    play(scenario)


def test_a_pod_that_the_kubelet_refuses_leaves_no_lock(play: Callable[..., None]) -> None:
    async def scenario(machine: Machine) -> None:
        await machine.server.wait_until(lambda: "watch pods" in machine.server.requests)
        machine.do("fail", machine.a)
        machine.do("fail", machine.b)
        await machine.see(healthy=set(), unhealthy=machine.slots)
        with pytest.raises(Refused):
            await machine.admit("p1", machine.b)
        await machine.server.wait_until(
            lambda: LOCK not in machine.server.annotations("nodes", NODE)
        )
        assert machine.annotations("p1")[BIND_PHASE] == "failed"

    play(scenario)
