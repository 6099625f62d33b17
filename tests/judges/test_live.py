"""An agent keeps the driver live: judges see what DCGM's names say, and faults as they come."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest

from tests.integration.agents import AgentThread, agent_thread, get
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.judges.conftest import Have
from tests.judges.driver_root import Card, DriverRoot
from tests.judges.namespace import need_namespaces
from tests.judges.real_plugin import plugin
from tests.judges.seeing import OLD, SEERS, Seen
from tests.pod_resources import pod_resources
from tests.unit.views.exporters.rig import samples

CARDS = 3
RESOURCE = "nvidia.com/gpu"
FLAGS = {
    "driver": "on",
    "nvidia_cards": str(CARDS),
    "nvidia_model": "H100-SXM5-80GB",
    "nvidia_memory_factor": "auto",
    "mlu_cards": "0",
    "iluvatar_cards": "0",
    "ascend_cards": "0",
}
MOST_TRIES = 60


@contextmanager
def live(folder: Path, tmp_path: Path, **flags: str) -> Iterator[tuple[AgentThread, DriverRoot]]:
    root = tmp_path / "root"
    with agent_thread(folder, driver_root=str(root), **FLAGS, **flags) as agent:
        cards = [
            Card(card.index, card.uuid, card.model.product, card.memory)
            for card in agent.agent.node.cards
        ]
        yield agent, DriverRoot(root, cards)


@pytest.mark.parametrize("judge", SEERS)
def test_judges_see_what_dcgm_says(
    judge: str, have: Have, socket_folder: Path, tmp_path: Path
) -> None:
    program, see = have(judge), SEERS[judge]
    pods_socket = socket_folder / "pods.sock"
    flags = {"dcgm_listen": "127.0.0.1:0", "load": "sine:20-80:10s"}
    with (
        pod_resources(pods_socket) as pods,
        live(socket_folder, tmp_path, pod_resources_socket=str(pods_socket), **flags) as (
            agent,
            root,
        ),
    ):
        for index in range(2):
            held = {RESOURCE: [f"{root.cards[index].uuid}-0"]}
            pods.pods["default", f"train-{index}", "main"] = held
        agent.call(agent.agent.holders.refresh)
        (view,) = [view for view in agent.agent.views if view.name == "dcgm"]
        url = f"http://{view.status()['address']}/metrics"
        for _ in range(MOST_TRIES):
            agent.call(agent.agent.state.load_changes.next().wait)
            before = scraped(url, root)
            seen = see(program, root)
            # Between two equal scrapes nothing has changed.
            if before == scraped(url, root) and before[0]["GPU_UTIL"] > 0:
                break
        else:
            raise AssertionError("the load never stayed the same while the judge looked")
        assert [each.card for each in seen] == root.cards
        with_reserved = judge in OLD
        for told, each in zip(before, seen, strict=True):
            assert shown(each) == pytest.approx(wanted(told, with_reserved=with_reserved), abs=1)


def scraped(url: str, root: DriverRoot) -> list[dict[str, float]]:
    """Return DCGM's numbers of each card, by the ends of their names."""
    found: list[dict[str, float]] = [{} for _ in root.cards]
    places = {card.uuid: card.index for card in root.cards}
    for (name, labels), value in samples(get(url)[1]).items():
        uuid = dict(labels).get("UUID")
        if uuid in places:
            found[places[uuid]][name.removeprefix("DCGM_FI_DEV_")] = value
    return found


def wanted(told: dict[str, float], *, with_reserved: bool) -> tuple[float, ...]:
    used = told["FB_USED"] + (told["FB_RESERVED"] if with_reserved else 0)
    return (told["GPU_UTIL"], used, told["POWER_USAGE"], told["GPU_TEMP"])


def shown(seen: Seen) -> tuple[float, ...]:
    return (seen.utilization, seen.used, seen.power, seen.temperature)


def test_a_fault_of_the_agent_reaches_nvidias_plugin(
    have: Have, socket_folder: Path, tmp_path: Path, google_messages: ModuleType
) -> None:
    program = have("nvidia-device-plugin", need_namespaces)
    with (
        tempfile.TemporaryDirectory(prefix="hm-") as other,
        GrpcioKubelet(Path(other), google_messages) as kubelet,
        live(socket_folder, tmp_path) as (agent, root),
        plugin(program, root, kubelet) as real,
    ):
        kubelet.wait_for_lists({RESOURCE})
        kubelet.wait_until(real.is_waiting, "its wait for events")
        agent.act("fail", "nvidia/1", xid=79)
        uuids = [card.uuid for card in root.cards]

        def health() -> dict[str, Any]:
            return kubelet.devices(RESOURCE)

        kubelet.wait_until(lambda: health()[uuids[1]] != "Healthy", "the card's fault")
        assert health() == {uuids[0]: "Healthy", uuids[1]: "Unhealthy", uuids[2]: "Healthy"}
        # While the driver doesn't reach one card, this plugin can't choose among the others.

        def refusal() -> str:
            try:
                kubelet.plugin(RESOURCE).prefer([uuids[0], uuids[2]], 1)
            except grpc.RpcError as error:
                return str(error)
            return ""

        assert "GPU is lost" in refusal()
        agent.act("recover", "nvidia/1")
        kubelet.wait_until(lambda: not refusal(), "its choice")
        # A fault after which it still reaches the card.
        agent.act("fail", "nvidia/2", xid=119)
        kubelet.wait_until(lambda: health()[uuids[2]] != "Healthy", "another card's fault")
        assert health()[uuids[0]] == "Healthy"
