"""Restarts of the kubelet, changes of the configuration and faults, in any order and at any time.

What the kubelet must have seen in the end is worked out here from nothing but the steps; the
kubelet is grpcio's, which shares no code with the agent.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.integration.agents import AgentThread, agent_thread
from tests.integration.evil_kubelet import MISBEHAVIOURS, evil_kubelet
from tests.integration.grpcio_kubelet import GrpcioKubelet

Step = tuple[Any, ...]

SPLIT, MEMORY = 3, 20
GPU, MLU = "nvidia.com/gpu", "cambricon.com/vmlu"
PER_CARD = {
    "nvidia": {
        GPU: SPLIT,
        "nvidia.com/gpucores": 100,
        "nvidia.com/gpumem": MEMORY,
        "nvidia.com/gpumem-percentage": 100,
    },
    "mlu": {MLU: SPLIT},
}
FLAGS = {
    "nvidia_split": str(SPLIT),
    "mlu_split": str(SPLIT),
    "nvidia_memory": str(MEMORY),
    "iluvatar_cards": "0",
    "ascend_cards": "0",
}

vendors = st.sampled_from(["nvidia", "nvidia", "mlu"])
steps = st.one_of(
    st.tuples(st.just("cards"), vendors, st.sampled_from([0, 0, 1, 3])),
    st.tuples(st.just("restart"), st.sampled_from([None, None, *MISBEHAVIOURS])),
    st.tuples(st.just("act"), st.sampled_from(["fail", "lose", "recover", "return"]), vendors),
    st.tuples(st.just("stream"), st.sampled_from(["down", "up", "drop"])),
    st.tuples(st.just("pause"), st.sampled_from([0.001, 0.01, 0.05, 0.2])),
)
bursts = st.lists(st.lists(steps, min_size=1, max_size=5), min_size=1, max_size=4)


class World:
    """A real agent and an independent kubelet on one side, the model on the other."""

    def __init__(self, agent: AgentThread, kubelet: GrpcioKubelet) -> None:
        self.agent = agent
        self.kubelet = kubelet
        self.count = {"nvidia": 2, "mlu": 2}
        self.out: dict[str, Counter[str]] = {"fail": Counter(), "lose": Counter()}
        self.is_down = False

    def cards(self, vendor: str, count: int) -> None:
        self.agent.call(self.agent.agent.set_options, {f"{vendor}-cards": str(count)}, False)
        self.count[vendor] = count
        for out in self.out.values():
            if not count:
                out.pop(vendor, None)
        if vendor == "nvidia" and not count:
            self.is_down = False

    def restart(self, misbehaviour: str | None) -> None:
        """Restart the kubelet; for a moment, one that misbehaves may be in its place."""
        if misbehaviour is None:
            self.kubelet.restart()
            return
        self.kubelet.kill()
        path = self.kubelet.folder / "kubelet.sock"
        path.unlink(missing_ok=True)
        with evil_kubelet(path, MISBEHAVIOURS[misbehaviour][0]):
            time.sleep(0.05)
        self.kubelet.start()

    def act(self, verb: str, vendor: str) -> None:
        """Do something to the first card of a vendor."""
        if not self.count[vendor]:
            return
        self.agent.act(verb, f"{vendor}/0")
        if verb in self.out:
            self.out[verb][vendor] += 1
        else:
            del self.out[{"recover": "fail", "return": "lose"}[verb]][vendor]

    def stream(self, verb: str) -> None:
        if self.count["nvidia"]:
            self.agent.act(verb, GPU)
            self.is_down = {"down": True, "up": False}.get(verb, self.is_down)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def wanted(self) -> dict[str, int]:
        """How many healthy devices of each resource there must be."""
        counts: dict[str, int] = {}
        for vendor, resources in PER_CARD.items():
            is_out = any(out[vendor] for out in self.out.values())
            for name, each in resources.items():
                if self.count[vendor] and not (name == GPU and self.is_down):
                    counts[name] = each * (self.count[vendor] - is_out)
        return counts

    def served(self) -> dict[str, int]:
        """How many healthy devices of each resource the kubelet sees."""
        counts = {}
        for name in {r.resource for r in self.kubelet.registrations}:
            current = self.kubelet.current(name)
            if not current.ended and current.lists:
                counts[name] = list(self.kubelet.devices(name).values()).count("Healthy")
        return counts

    def check(self, done: Sequence[Step]) -> None:
        wanted = self.wanted()
        try:
            self.kubelet.wait_until(lambda: self.served() == wanted)
        except AssertionError:
            phases = [(p.resource.name, p.phase, p.reason) for p in self.agent.agent.plugins]
            raise AssertionError(
                f"after {done}: {self.served()} in place of {wanted}; {phases}"
            ) from None
        assert self.agent.is_alive
        assert self.agent.agent.supervisor.failures == {}


@settings(
    max_examples=30,
    deadline=None,
    # A run takes seconds, and no two are the same: no shrinking.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sequence=bursts)
@example(
    sequence=[
        [("restart", None), ("pause", 0.01), ("cards", "nvidia", 0), ("pause", 0.2)],
        [("cards", "nvidia", 3)],
        [("restart", "resets the stream"), ("cards", "nvidia", 0), ("cards", "nvidia", 3)],
    ]
)
def test_the_kubelet_sees_what_there_is_whatever_happened_before(
    google_messages: ModuleType, sequence: Sequence[Sequence[Step]]
) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="hm-") as name,
        GrpcioKubelet(Path(name), google_messages) as kubelet,
        agent_thread(Path(name), **FLAGS) as agent,
    ):
        world = World(agent, kubelet)
        world.check([])
        done: list[Step] = []
        for burst in sequence:
            for what, *arguments in burst:
                getattr(world, what)(*arguments)
                done.append((what, *arguments))
            world.check(done)


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.05])
def test_cards_that_go_and_come_after_a_call_that_broke(
    google_messages: ModuleType, socket_folder: Path, pause: float
) -> None:
    """Such a call left its task half cancelled: the plugin never said that it had ended."""
    with (
        GrpcioKubelet(socket_folder, google_messages) as kubelet,
        agent_thread(socket_folder, **FLAGS) as agent,
    ):
        world = World(agent, kubelet)
        world.check([])
        kubelet.kill()
        (socket_folder / "kubelet.sock").unlink(missing_ok=True)
        with evil_kubelet(socket_folder / "kubelet.sock", MISBEHAVIOURS["resets the stream"][0]):
            kubelet.wait_until(
                lambda: all("closed the connection" in p.reason for p in agent.agent.plugins)
            )
        kubelet.start()
        world.pause(pause)
        world.cards("nvidia", 0)
        world.cards("nvidia", 3)
        world.check([])
