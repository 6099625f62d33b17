import logging
import subprocess
import sys

import anyio
import pytest

from hami_mock import agent
from hami_mock.cluster import kubernetes
from hami_mock.kubelet.limits import Version
from hami_mock.settings.settings import load
from hami_mock.sources import configured
from tests.unit.builders import resource_named


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes that an API server, which has kubelets of 1.35, was asked about."""
    nodes: list[str] = []

    async def kubelet_version(node_name: str) -> Version | None:
        nodes.append(node_name)
        return 1, 35

    monkeypatch.setattr(kubernetes, "kubelet_version", kubelet_version)
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    return nodes


def planned(**flags: str) -> tuple[int, Version | None]:
    """The factor of gpumem, and the version that it was chosen for."""
    values = {name.replace("_", "-"): value for name, value in flags.items()}
    node, version = anyio.run(configured.plan, load({"node-name": "node-a", **values}))
    return resource_named(node, "nvidia.com/gpumem").factor, version


def test_auto_asks_the_api_server_for_the_version(asked: list[str]) -> None:
    assert planned(nvidia_memory_factor="auto") == (1, (1, 35))
    assert asked == ["node-a"]


def test_a_version_that_was_given_is_not_asked_for(asked: list[str]) -> None:
    factor, version = planned(nvidia_memory_factor="auto", kubelet_version="1.36")
    assert factor > 1
    assert version == (1, 36)
    assert asked == []


def test_without_an_api_server_auto_reckons_with_the_newest(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG")
    factor, version = planned(nvidia_memory_factor="auto")
    assert factor > 1
    assert version is None
    assert asked == []


def announced(caplog: pytest.LogCaptureFixture, **flags: str) -> list[tuple[str, str]]:
    settings = load({name.replace("_", "-"): value for name, value in flags.items()})
    node, version = anyio.run(configured.plan, settings)
    with caplog.at_level(logging.INFO):
        agent._announce(settings, node, version)
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_the_start_is_logged_with_the_resources_and_the_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = announced(caplog, node_name="node-a", kubelet_version="1.36")
    assert "on node node-a: 8 cards, 8 resources" in lines[0][1]
    assert ("INFO", "nvidia.com/gpumem: 65536 x 1 MiB") in lines
    warned = [text.partition(":")[0] for level, text in lines if level == "WARNING"]
    assert warned == ["nvidia.com/gpumem", "huawei.com/Ascend910-memory"]


def test_a_node_without_cards_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    none = dict.fromkeys(("nvidia_cards", "mlu_cards", "iluvatar_cards", "ascend_cards"), "0")
    lines = announced(caplog, **none)
    assert [level for level, text in lines if "nothing will be registered" in text] == ["WARNING"]


def test_an_agent_without_the_cluster_loads_nothing_of_it() -> None:
    program = (
        "import sys, hami_mock.cli.run, hami_mock.agent, hami_mock.control.server; "
        "print([m for m in sys.modules if m in ('kubernetes_asyncio', 'aiohttp', 'yaml') "
        "or m.startswith(('hami_mock.views.hami', 'hami_mock.views.labels', "
        "'hami_mock.sources.annotated')) or m.endswith(('_labels', '.label_text'))])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "[]\n"
