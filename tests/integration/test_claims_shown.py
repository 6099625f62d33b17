"""Who has what of a card by a claim: `ctl`, the page, metrics and NVML all know it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hami_mock.node.cards import Card
from hami_mock.vendors.dra import Profile
from hami_mock.views.dra.cdi import cdi_spec
from hami_mock.views.dra.devices import Pool
from hami_mock.views.dra.preparing import prepare
from tests.integration.agents import AgentThread, agent_thread, get
from tests.integration.nvml_client import nvml_client, until
from tests.pod_resources import message, pod_resources
from tests.unit.builders import NODE
from tests.unit.views.dra.rig import HAMI, NVIDIA, claim, pool_of, result
from tests.unit.views.exporters.rig import named, samples

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
pytestmark = pytest.mark.usefixtures("compiled_library")

MIB = 2**20
FLAGS = {
    "mlu_cards": "0", "iluvatar_cards": "0", "ascend_cards": "0", "device_plugins": "off",
    "dcgm_listen": "127.0.0.1:0", "hami_monitor_listen": "127.0.0.1:0", "driver": "on",
    "load": "60:memory=50", "node_name": NODE,
}  # fmt: skip
CLAIMS = ("a", "b")


@dataclass
class Claimed:
    """An agent, its driver's pool, and a kubelet that knows a pod for each of CLAIMS."""

    agent: AgentThread
    pool: Pool

    @property
    def cards(self) -> tuple[Card, ...]:
        return self.pool.state.node.cards

    def give(self, name: str, device: str, **more: Any) -> dict[str, Any]:
        """Prepare a claim; return the variables of a container with it."""
        allocated = claim(result(self.pool.driver, device, **more), name=name, uid=f"uid-{name}")
        made = prepare(allocated, f"uid-{name}", self.pool)
        self.agent.call(self.pool.state.prepare_claim, made)
        self.agent.call(self.agent.agent.holders.refresh)
        (edits,) = (each["containerEdits"] for each in cdi_spec(self.pool, made)["devices"])
        return dict(pair.split("=", 1) for pair in edits["env"])

    def take_back(self) -> None:
        for made in [*self.pool.state.claims.values()]:
            self.agent.call(self.pool.state.unprepare_claim, made)

    def metric(self, view: str, name: str) -> list[tuple[dict[str, str], float]]:
        """The samples of a metric that name a pod."""
        (shown,) = (each for each in self.agent.agent.views if each.name == view)
        found = samples(get(f"http://{shown.status()['address']}/metrics")[1])
        return [each for each in named(found, name) if each[0].get("pod")]

    def holders(self) -> list[dict[str, Any]]:
        cards = self.agent.call(self.agent.agent.status)["cards"]
        return [holder for card in cards for holder in card["holders"]]


@contextmanager
def claimed(folder: Path, root: Path, profile: Profile, **flags: str) -> Iterator[Claimed]:
    own = {"driver_root": str(root), "pod_resources_socket": str(folder / "pods.sock"), **flags}
    with (
        pod_resources(folder / "pods.sock") as pods,
        agent_thread(folder, **{**FLAGS, **own}) as agent,
    ):
        pool = pool_of(agent.agent.state, profile)
        told = message("ListPodResourcesResponse")()
        for name in CLAIMS:
            container = told.pod_resources.add(namespace="ml", name=f"pod-{name}").containers.add()
            container.name = "main"
            row = container.dynamic_resources.add(claim_name=name, claim_namespace="default")
            row.claim_resources.add(driver_name=pool.driver.name)
        pods.payload = told.SerializeToString()
        yield Claimed(agent, pool)


def test_all_views_know_who_has_a_part_of_a_card(socket_folder: Path, root: Path) -> None:
    pod = {"namespace": "ml", "pod": "pod-a", "container": "main"}
    amounts = {"memory": "8Gi", "cores": "30"}
    with claimed(socket_folder, root, HAMI) as node, nvml_client(root) as client:
        variables = node.give("a", "hami-gpu-1", shareID="s", consumedCapacity=amounts)
        (holder,) = node.holders()
        assert {key: holder[key] for key in pod} == pod
        assert (holder["memory"], holder["cores"]) == (8192, 30)

        snapshot = node.agent.call(node.agent.agent.snapshot)
        shown = {name: card["containers"] for name, card in snapshot["cards"].items()}
        assert shown["nvidia/0"] == {}
        on_page = shown["nvidia/1"]["ml/pod-a/main"]
        assert (on_page["memory_limit"], on_page["cores_limit"]) == (8192, 30)

        ((labels, limit),) = node.metric("hami monitor", "hami_vgpu_memory_limit_bytes")
        assert (labels["pod"], limit) == ("pod-a", 8192 * MIB)
        until(lambda: node.metric("dcgm", "DCGM_FI_DEV_FB_USED")[0][1] > 0)
        ((labels, _),) = node.metric("dcgm", "DCGM_FI_DEV_FB_USED")
        assert {key: labels[key] for key in pod} == pod
        assert labels["UUID"] == node.cards[1].uuid

        until(lambda: [len(each) for each in client.ask("processes")] == [0, 1])
        with nvml_client(root, **variables) as within:
            until(lambda: within.cards[0]["used"] > 0)
            (card,) = within.cards
        assert (card["uuid"], card["total"]) == (node.cards[1].uuid, 8192 * MIB)

        node.take_back()
        until(lambda: client.ask("processes") == [[], []])
        assert node.holders() == []
        assert node.metric("hami monitor", "hami_vgpu_memory_limit_bytes") == []
        assert node.metric("dcgm", "DCGM_FI_DEV_FB_USED") == []


def test_a_container_with_an_instance_sees_that_alone(socket_folder: Path, root: Path) -> None:
    mig = {"nvidia_model": "A100-SXM4-40GB", "nvidia_mig": ""}
    with claimed(socket_folder, root, NVIDIA, **mig) as node:
        parts = [
            node.give(name, f"gpu-1-mig-3g20gb-9-{start}")["NVIDIA_VISIBLE_DEVICES"]
            for name, start in zip(CLAIMS, (0, 4), strict=True)
        ]
        assert [holder["instances"][0]["uuid"] for holder in node.holders()] == parts
        cut = node.agent.call(node.agent.agent.status)["cards"][1]["cut"]
        assert [each["uuid"] for each in cut] == parts

        def listed(**variables: str) -> str:
            ran = subprocess.run(
                [root / "bin/nvidia-smi", "-L"], env=variables, capture_output=True, text=True,
                check=True,
            )  # fmt: skip
            return ran.stdout

        until(lambda: all(uuid in listed() for uuid in parts))
        for own, other in (parts, parts[::-1]):
            told = listed(NVIDIA_VISIBLE_DEVICES=own)
            assert own in told
            assert other not in told
            assert node.cards[0].uuid not in told
