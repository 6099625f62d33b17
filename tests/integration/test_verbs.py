"""What each mode asks of the API server, and what its role allows: no more and no less."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from hami_mock.agent import Agent
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import NotAssigned
from hami_mock.faults.actions import Action, perform
from hami_mock.kubelet._proto.k8s.io.kubelet.pkg.apis.dra.v1 import (
    Claim,
    NodePrepareResourcesRequest,
)
from hami_mock.kubelet.rpc import call
from hami_mock.node.event_kinds import Kind
from hami_mock.node.sizing import Node
from hami_mock.node.ways import Units
from hami_mock.settings.settings import load
from hami_mock.sources.configured import first_node
from hami_mock.views import node_events
from hami_mock.views.hami.allocator import Allocator
from hami_mock.views.hami.left_behind import LeftBehind
from tests.integration.fake_api_server import FakeApiServer, api_server
from tests.unit.builders import NODE, resource_named
from tests.unit.deploy.program import ROOT
from tests.unit.views.hami.rig import pod, segment

Used = set[tuple[str, str]]
"""Verbs and resources."""
Script = Callable[[FakeApiServer, Agent, Kubernetes], Awaitable[None]]

LOCK = "hami.io/mutex.lock"
NODE_OBJECT = {
    "metadata": {"name": NODE, "annotations": {}},
    "status": {"nodeInfo": {"kubeletVersion": "v1.36.0"}},
}


async def start(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    """Units come into the status, and whose they are is read."""
    in_status = [each.name for each in agent.node.resources if each.in_status]
    assert bool(in_status) == (agent.settings.units is not Units.PLUGIN)
    if in_status:
        await server.wait_until(lambda: in_status[0] in capacity(server))
        server.set_status(NODE, capacity={in_status[0]: "0"})
        await server.wait_until(lambda: capacity(server).get(in_status[0], "0") != "0")
        await read(server, agent, kubernetes)


def capacity(server: FakeApiServer) -> dict[str, str]:
    status: dict[str, dict[str, str]] = server.objects["nodes", "", NODE]["status"]
    return status.get("capacity", {})


async def follow(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    register = "hami.io/node-nvidia-register"
    card = "GPU-1,10,50,100,NVIDIA-V100,0,true:"
    await server.wait_until(lambda: "watch nodes" in server.requests)
    for value in (card, None, card):
        server.annotate("nodes", NODE, {register: value})
        await agent.state.wait_until(lambda: bool(agent.node.resources) == bool(value))  # noqa: B023
    await start(server, agent, kubernetes)


async def report(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    await start(server, agent, kubernetes)
    agent.state.events.add(Kind.CONFIGURATION_CHANGED, "", "something")
    await server.wait_until(lambda: len(server.created) == 1)


async def label(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    """Labels come, and one that somebody changes comes back."""
    await start(server, agent, kubernetes)
    for plugin in agent.plugins:
        plugin.was_watched = True  # there is no kubelet here
    agent.state.changes.send()
    await server.wait_until(lambda: server.labels(NODE).get("gpu") == "on")
    server.label(NODE, {"gpu": "off"})
    await server.wait_until(lambda: server.labels(NODE)["gpu"] == "on")


async def allocate(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    """A pod that the lock names, one that it doesn't, one that fails, and a lock left behind."""
    allocator = Allocator(agent.state, kubernetes)
    gpu = resource_named(agent.node, "nvidia.com/gpu")
    card = gpu.cards[0].uuid
    now = "2026-01-01T00:00:00Z"
    await server.wait_until(lambda: "patch nodes node-a" in server.requests)
    await start(server, agent, kubernetes)
    server.put("pods", pod("p1", vgpu=segment(card)))
    server.annotate("nodes", NODE, {LOCK: f"{now},default,p1"})
    await allocator.assign(gpu, [[f"{card}-0"]])
    server.put("pods", pod("p2", vgpu=segment(card)))
    await allocator.assign(gpu, [[f"{card}-1"]])
    server.put("pods", pod("p3", vgpu=segment(card, card)))
    with pytest.raises(NotAssigned):
        await allocator.assign(gpu, [[f"{card}-2"]])
    server.annotate("nodes", NODE, {LOCK: f"{now},default,nobody"})
    await LeftBehind(agent.state, kubernetes, allocator.troubles).clear_up()
    assert LOCK not in server.annotations("nodes", NODE)


async def read(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    await server.wait_until(lambda: "watch pods" in server.requests)


async def claim(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    """Slices come, change and come back, and a claim is prepared."""

    def devices() -> list[dict[str, Any]]:
        slices = [thing for key, thing in server.objects.items() if key[0] == "resourceslices"]
        return [each for thing in slices for each in thing["spec"]["devices"]]

    await server.wait_until(lambda: bool(devices()))
    perform(Action("fail", ("nvidia/0",)), agent.state)
    await server.wait_until(lambda: any("taints" in each for each in devices()))
    driver = "hami-core-gpu.project-hami.io"
    request = NodePrepareResourcesRequest([Claim(namespace="default", uid="u", name="gone")])
    path = Path(agent.settings.dra_plugins_dir) / driver / "dra.sock"
    method = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
    assert b"there is no claim default/gone" in await call(path, method, request, 20)


def used(folder: Path, sockets: Path, flags: dict[str, str], script: Script) -> Used:
    own = {f"dra-{name}-dir": str(sockets / name) for name in ("plugins", "registry")}
    (sockets / "registry").mkdir(exist_ok=True)
    given = {"node-name": NODE, "socket-dir": str(sockets), "http-listen": "", "cdi-dir": ""}
    settings = load({**given, **own, **flags})

    async def scenario() -> Used:
        with anyio.fail_after(60):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                server.put("nodes", NODE_OBJECT)
                node = Node(NODE, (), ())
                if not settings.is_companion:
                    node, _ = await first_node(settings)
                connects = settings.needs_cluster or settings.may_use_status
                agent = Agent(settings, node, {}, kubernetes if connects else None)
                async with anyio.create_task_group() as tasks:
                    await tasks.start(agent.run)
                    await script(server, agent, kubernetes)
                    tasks.cancel_scope.cancel()
                return {(words[0], words[1]) for words in map(str.split, server.requests)}

    return anyio.run(scenario)


def allowed(*files: str) -> Used:
    documents = [each for file in files for each in yaml.safe_load_all((ROOT / file).read_text())]
    return {
        (verb, resource)
        for document in documents
        for rule in document.get("rules", ())
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def allowed_by_chart(mode: str, *, events: bool, labels: bool, dra: bool) -> Used:
    """The rules of the chart's template, as far as they can be read without helm."""
    text = (ROOT / "charts/hami-mock/templates/rbac.yaml").read_text()
    assert 'ternary "hami" .Values.mode (gt (len .Values.labels) 0)' in text
    assert '{{- $inStatus := ne .Values.units "plugin" }}' in text
    key = "hami" if labels else mode
    # Of mode plain, these are the verbs with units in the status.
    (of_nodes,) = re.findall(
        rf'(?:"{key}"|\${key} := \$inStatus \| ternary) \(list ([^)]+)\)', text
    )
    found = {(verb, "nodes") for verb in re.findall(r"\w+", of_nodes)}
    rules = re.findall(r"resources: \[([\w/]+)\]\n +verbs: \[([^]]+)\]", text)
    of_dra = ["resourceslices", "resourceclaims"]
    assert [resource for resource, _ in rules] == [
        "nodes/status", "pods", "pods", *of_dra, "events"
    ]  # fmt: skip
    applies = (True, mode == "hami", mode != "hami", dra, dra, events)
    for (resource, verbs), does in zip(rules, applies, strict=True):
        found |= {(verb, resource) for verb in verbs.split(", ") if does}
    return found


MODES: dict[str, tuple[dict[str, str], Script, tuple[str, ...], str]] = {
    "plain": ({}, start, (), "plain"),
    "events": ({"kubernetes-events": "on"}, report, ("events",), "plain"),
    "pods": ({"pods": "on"}, start, (), "plain"),
    "companion": ({"source": "hami"}, follow, (), "companion"),
    "hami": ({"hami": "on"}, allocate, ("hami",), "hami"),
    "dra": ({"dra": "hami", "ascend-cards": "0"}, claim, ("dra",), "plain"),
    "labels": ({"labels": "all", "labels-remove": "on"}, label, ("labels",), "plain"),
}


@pytest.mark.parametrize("mode", MODES)
def test_the_role_of_a_mode_has_the_verbs_that_it_uses(
    tmp_path: Path, socket_folder: Path, mode: str
) -> None:
    flags, script, components, in_chart = MODES[mode]
    asked = used(tmp_path, socket_folder, flags, script)
    files = [f"components/{component}/rbac.yaml" for component in components]
    assert asked == allowed("manifests/k8s-mock-rbac.yaml", *files)
    has = {name: name in components for name in ("events", "labels", "dra")}
    assert asked == allowed_by_chart(in_chart, **has)


def test_an_agent_whose_units_have_plugins_asks_nothing(
    tmp_path: Path, socket_folder: Path
) -> None:
    assert used(tmp_path, socket_folder, {"units": "plugin"}, start) == set()


def test_an_agent_that_is_connected_looks_for_what_another_has_left(
    tmp_path: Path, socket_folder: Path
) -> None:
    flags = {"units": "plugin", "pods": "on"}
    wanted = {("list", "pods"), ("watch", "pods"), ("get", "nodes")}
    assert used(tmp_path, socket_folder, flags, read) == wanted


def test_events_are_made_where_the_role_is() -> None:
    documents = yaml.safe_load_all((ROOT / "components/events/rbac.yaml").read_text())
    assert {each["metadata"]["namespace"] for each in documents} == {node_events.NAMESPACE}
