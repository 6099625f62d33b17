"""What each mode asks of the API server, and what its role allows: no more and no less."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
import yaml

from hami_mock.agent import Agent
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import NotAssigned
from hami_mock.node.event_kinds import Kind
from hami_mock.node.sizing import Node
from hami_mock.settings.settings import load
from hami_mock.sources.configured import first_node
from hami_mock.views import node_events
from hami_mock.views.hami.allocator import Allocator
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
    assert agent.node.resources


async def follow(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    register = "hami.io/node-nvidia-register"
    card = "GPU-1,10,50,100,NVIDIA-V100,0,true:"
    await server.wait_until(lambda: "watch nodes" in server.requests)
    for value in (card, None, card):
        server.annotate("nodes", NODE, {register: value})
        await agent.state.wait_until(lambda: bool(agent.node.resources) == bool(value))  # noqa: B023


async def report(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    agent.state.events.add(Kind.CONFIGURATION_CHANGED, "", "something")
    await server.wait_until(lambda: len(server.created) == 1)


async def label(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    """Labels come, and one that somebody changes comes back."""
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
    await read(server, agent, kubernetes)
    server.put("pods", pod("p1", vgpu=segment(card)))
    server.annotate("nodes", NODE, {LOCK: f"{now},default,p1"})
    await allocator.assign(gpu, [[f"{card}-0"]])
    server.put("pods", pod("p2", vgpu=segment(card)))
    await allocator.assign(gpu, [[f"{card}-1"]])
    server.put("pods", pod("p3", vgpu=segment(card, card)))
    with pytest.raises(NotAssigned):
        await allocator.assign(gpu, [[f"{card}-2"]])
    server.annotate("nodes", NODE, {LOCK: f"{now},default,nobody"})
    await allocator.clear_lock()
    assert LOCK not in server.annotations("nodes", NODE)


async def read(server: FakeApiServer, agent: Agent, kubernetes: Kubernetes) -> None:
    await server.wait_until(lambda: "watch pods" in server.requests)


def used(folder: Path, sockets: Path, flags: dict[str, str], script: Script) -> Used:
    settings = load({"node-name": NODE, "socket-dir": str(sockets), "http-listen": "", **flags})

    async def scenario() -> Used:
        with anyio.fail_after(60):
            async with api_server(folder) as server, Kubernetes() as kubernetes:
                server.put("nodes", NODE_OBJECT)
                node = Node(NODE, (), ())
                if not settings.is_companion:
                    node, _ = await first_node(settings)
                agent = Agent(settings, node, {}, kubernetes if settings.needs_cluster else None)
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


def allowed_by_chart(mode: str, *, events: bool, pods: bool, labels: bool) -> Used:
    """The rules of the chart's template, as far as they can be read without helm."""
    text = (ROOT / "charts/hami-mock/templates/rbac.yaml").read_text()
    assert 'ternary "hami" .Values.mode (gt (len .Values.labels) 0)' in text
    key = "hami" if labels else mode
    (of_nodes,) = re.findall(rf'"{key}" \(list ([^)]+)\)', text)
    found = {(verb, "nodes") for verb in re.findall(r"\w+", of_nodes)}
    rules = re.findall(r"resources: \[(\w+)\]\n +verbs: \[([^]]+)\]", text)
    assert [resource for resource, _ in rules] == ["pods", "pods", "events"]
    applies = (mode == "hami", pods and mode != "hami", events)
    for (resource, verbs), does in zip(rules, applies, strict=True):
        found |= {(verb, resource) for verb in verbs.split(", ") if does}
    return found


AUTO = {"nvidia-memory-factor": "auto"}
MODES: dict[str, tuple[dict[str, str], Script, tuple[str, ...], str]] = {
    "plain": (AUTO, start, (), "plain"),
    "events": ({**AUTO, "kubernetes-events": "on"}, report, ("events",), "plain"),
    "pods": ({**AUTO, "pods": "on"}, read, ("pods",), "plain"),
    "companion": ({"source": "hami"}, follow, ("companion",), "companion"),
    "hami": ({"hami": "on"}, allocate, ("hami",), "hami"),
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
    has = {name: name in components for name in ("events", "pods", "labels")}
    assert asked == allowed_by_chart(in_chart, **has)


def test_an_agent_of_plain_cards_asks_nothing(tmp_path: Path, socket_folder: Path) -> None:
    assert used(tmp_path, socket_folder, {}, start) == set()


def test_events_are_made_where_the_role_is() -> None:
    documents = yaml.safe_load_all((ROOT / "components/events/rbac.yaml").read_text())
    assert {each["metadata"]["namespace"] for each in documents} == {node_events.NAMESPACE}
