"""The load of a whole agent: from the kubelet's holders to `ctl load` and `ctl status`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hami_mock.cli.ctl.client import main
from hami_mock.node.cards import card_uuid
from hami_mock.node.readings import Reading
from tests.integration.agents import AgentThread, agent_thread, run_cli
from tests.makers import NVIDIA
from tests.pod_resources import pod_resources

GPU = "nvidia.com/gpu"
POD = ("default", "train-0", "main")


class Loaded:
    """An agent with a pod on its first card, and `ctl`."""

    def __init__(self, agent: AgentThread, socket: Path, output: Any) -> None:
        self.agent = agent
        self._socket, self._output = socket, output

    def ctl(self, *words: str) -> str:
        self._output.readouterr()
        assert main([f"--control-socket={self._socket}", *words]) == 0
        return str(self._output.readouterr().out)

    def refused(self, *words: str) -> str:
        result = run_cli("ctl", f"--control-socket={self._socket}", *words)
        assert result.returncode == 2, result
        return result.stderr

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ctl("status", "-o", "json"))
        return found

    @property
    def reading(self) -> Reading:
        state = self.agent.agent.state
        return state.readings[state.node.cards[0].uuid]


@pytest.fixture
def loaded(socket_folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Loaded]:
    with _loaded(socket_folder, capsys) as found:
        yield found


@contextmanager
def _loaded(folder: Path, output: Any, **flags: str) -> Iterator[Loaded]:
    pods_socket, control = folder / "pods.sock", folder / "c" / "s"
    given = {"pod_resources_socket": str(pods_socket), "control_socket": str(control)}
    first = card_uuid("n1", NVIDIA, 0)
    with pod_resources(pods_socket) as pods:
        pods.pods[POD] = {GPU: [f"{first}-0"], "nvidia.com/gpumem": ["000", "001"]}
        with agent_thread(folder, **given, **flags) as agent:
            yield Loaded(agent, control, output)


def test_a_pods_load_is_set_shown_and_cleared(loaded: Loaded) -> None:
    assert loaded.ctl("load", "default/train-0", "70") == "default/train-0: 70 (1 container)\n"
    status = loaded.status()
    card, *others = status["cards"]
    assert card["reading"]["busy"] == card["load"]["busy"] == 70
    assert card["holders"][0]["load"] == {"busy": 70, "memory": 2}
    assert all(other["reading"]["busy"] == 0 for other in others)
    assert status["load"]["set"] == {"default/train-0": "70"}
    text = loaded.ctl("status")
    assert "Load set with ctl: default/train-0 70" in text
    assert "BUSY %" in text
    told = loaded.ctl("load", "nvidia/0", "mlu", "sine:20-80:10m")
    assert told == (
        "nvidia/0: sine:20-80:10m (all containers on 1 card)\n"
        "mlu: sine:20-80:10m (all containers on 2 cards)\n"
    )
    assert loaded.reading.busy == 20
    assert loaded.ctl("load", "nvidia/0", "--clear") == "nvidia/0: as its pod says\n"
    assert loaded.reading.busy == 70
    assert loaded.ctl("load", "--clear") == (
        "default/train-0: as its pod says\nmlu: as its pod says\n"
    )
    assert loaded.reading.busy == 0
    assert loaded.ctl("load", "--clear") == "no load was set\n"


def test_what_makes_no_sense_is_refused_and_nothing_is_changed(loaded: Loaded) -> None:
    text = loaded.refused("load", "default/train-0", "default/nobody", "50")
    assert "load: there is no card or pod 'default/nobody': the cards are nvidia/0, " in text
    assert "pods that hold devices: default/train-0" in text
    text = loaded.refused("load", "default/train-0", "sinus")
    assert "load: 'sinus' is not a load (there is no shape 'sinus'; did you mean sine?)" in text
    assert "such as ctl load default/train-0 90" in loaded.refused("load", "default/train-0")
    assert "nothing is set for 'x/y'" in loaded.refused("load", "x/y", "--clear")
    assert loaded.status()["load"]["set"] == {}


def test_options_take_effect_at_once(loaded: Loaded) -> None:
    loaded.status()
    loaded.ctl("set", "load=60", "time-factor=100")
    state = loaded.agent.agent.state

    async def wait_for(busy: int) -> None:
        await state.load_changes.wait_until(lambda: loaded.reading.busy == busy)

    loaded.agent.call(wait_for, 60)
    status = loaded.status()
    assert (status["load"]["default"], status["load"]["time_factor"]) == ("60", 100)
    before = status["load"]["time"]
    loaded.agent.call(state.load_changes.next().wait)
    assert loaded.status()["load"]["time"] > before + 50
    assert "restart the agent with --load-trace" in loaded.refused("set", "load-trace=/x")


def test_a_trace_that_isnt_there_ends_the_start(socket_folder: Path) -> None:
    result = run_cli(
        "run", f"--socket-dir={socket_folder}", "--http-listen=", "--control-socket=",
        "--load-trace=/nowhere/t.csv",
    )  # fmt: skip
    assert result.returncode == 2
    assert "--load-trace: can't read '/nowhere/t.csv': No such file or directory" in result.stderr
