"""Who has a part of a card by a claim: `ctl`, the page, metrics and NVML all know it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hami_mock.node.cards import Card
from hami_mock.views.dra.cdi import cdi_spec
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.preparing import prepare
from tests.integration.agents import AgentThread, agent_thread, get
from tests.integration.nvml_client import nvml_client, until
from tests.pod_resources import message, pod_resources
from tests.unit.builders import NODE
from tests.unit.views.dra.rig import claim, pool_of, result
from tests.unit.views.exporters.rig import named, samples

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
pytestmark = pytest.mark.usefixtures("compiled_library")

DRIVER, MIB = "hami-core-gpu.project-hami.io", 2**20
FLAGS = {
    "mlu_cards": "0", "iluvatar_cards": "0", "ascend_cards": "0", "device_plugins": "off",
    "dcgm_listen": "127.0.0.1:0", "hami_monitor_listen": "127.0.0.1:0", "driver": "on",
    "load": "60:memory=50", "node_name": NODE,
}  # fmt: skip


@dataclass
class Claimed:
    """An agent, the card that a claim has a part of, and the variables of a container with it."""

    agent: AgentThread
    card: Card
    variables: dict[str, Any]

    def metric(self, view: str, name: str) -> list[tuple[dict[str, str], float]]:
        """The samples of a metric that name a pod."""
        (shown,) = (each for each in self.agent.agent.views if each.name == view)
        found = samples(get(f"http://{shown.status()['address']}/metrics")[1])
        return [each for each in named(found, name) if each[0].get("pod")]


@pytest.fixture
def claimed(socket_folder: Path, root: Path) -> Iterator[Claimed]:
    told = message("ListPodResourcesResponse")()
    container = told.pod_resources.add(namespace="ml", name="train-0").containers.add(name="main")
    of_claim = container.dynamic_resources.add(claim_name="c", claim_namespace="default")
    of_claim.claim_resources.add(driver_name=DRIVER, device_name="hami-gpu-1")
    socket = socket_folder / "pods.sock"
    flags = {**FLAGS, "driver_root": str(root), "pod_resources_socket": str(socket)}
    with pod_resources(socket) as pods, agent_thread(socket_folder, **flags) as agent:
        pods.payload = told.SerializeToString()
        pool = pool_of(agent.agent.state)
        variables = agent.call(give_a_part, pool)
        agent.call(agent.agent.holders.refresh)
        yield Claimed(agent, pool.state.node.cards[1], variables)


def give_a_part(pool: Pool) -> dict[str, str]:
    """Prepare a claim of a part of the second card."""
    consumed = {"memory": "8Gi", "cores": "30"}
    part = result(pool.driver, "hami-gpu-1", shareID="s", consumedCapacity=consumed)
    made = prepare(claim(part), "u-1", pool)
    pool.state.prepare_claim(made)
    (device,) = cdi_spec(pool, made)["devices"]
    return dict(pair.split("=", 1) for pair in device["containerEdits"]["env"])


def test_all_views_know_who_has_what_by_a_claim(claimed: Claimed, root: Path) -> None:
    agent, pod = claimed.agent, {"namespace": "ml", "pod": "train-0", "container": "main"}

    def status() -> list[dict[str, Any]]:
        cards: list[dict[str, Any]] = agent.call(agent.agent.status)["cards"]
        return [holder for card in cards for holder in card["holders"]]

    (holder,) = status()
    assert {key: holder[key] for key in pod} == pod
    assert (holder["memory"], holder["cores"]) == (8192, 30)

    snapshot = agent.call(agent.agent.snapshot)
    shown = {name: card["containers"] for name, card in snapshot["cards"].items()}
    assert shown["nvidia/0"] == {}
    on_page = shown["nvidia/1"]["ml/train-0/main"]
    assert (on_page["memory_limit"], on_page["cores_limit"]) == (8192, 30)

    ((labels, limit),) = claimed.metric("hami monitor", "hami_vgpu_memory_limit_bytes")
    assert (labels["pod"], limit) == ("train-0", 8192 * MIB)
    until(lambda: claimed.metric("dcgm", "DCGM_FI_DEV_FB_USED")[0][1] > 0)
    ((labels, _),) = claimed.metric("dcgm", "DCGM_FI_DEV_FB_USED")
    assert {key: labels[key] for key in pod} == pod
    assert labels["UUID"] == claimed.card.uuid

    with nvml_client(root) as node:
        until(lambda: [len(each) for each in node.ask("processes")] == [0, 1])
    with nvml_client(root, **claimed.variables) as within:
        until(lambda: within.cards[0]["used"] > 0)
        (card,) = within.cards
    assert (card["uuid"], card["total"]) == (claimed.card.uuid, 8192 * MIB)


def test_who_gave_its_claim_back_is_shown_no_more(claimed: Claimed, root: Path) -> None:
    agent, state = claimed.agent, claimed.agent.agent.state

    def take_back() -> None:
        (made,) = state.claims.values()
        state.unprepare_claim(made)

    with nvml_client(root) as node:
        until(lambda: len(node.ask("processes")[1]) == 1)
        agent.call(take_back)
        until(lambda: node.ask("processes") == [[], []])
    assert not any(card["holders"] for card in agent.call(agent.agent.status)["cards"])
    assert claimed.metric("hami monitor", "hami_vgpu_memory_limit_bytes") == []
    assert claimed.metric("dcgm", "DCGM_FI_DEV_FB_USED") == []
