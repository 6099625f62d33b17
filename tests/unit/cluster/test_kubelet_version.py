import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from hami_mock.cluster.kubernetes import is_configured, kubelet_version
from hami_mock.kubelet.limits import Version

Reply = Callable[[], web.Response]

NODE_INFO = dict.fromkeys(
    ("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion",
     "kubeletVersion", "machineID", "operatingSystem", "osImage", "systemUUID"),
    "x",
)  # fmt: skip


def node(version: str) -> dict[str, Any]:
    metadata = {"name": "node-a", "resourceVersion": "7"}
    return {"metadata": metadata, "status": {"nodeInfo": {**NODE_INFO, "kubeletVersion": version}}}


def kubeconfig(server: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {}}],
        }
    )


@pytest.fixture
def kubeconfig_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from kubernetes_asyncio.config import kube_config

    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    # kubernetes_asyncio reads the variable once, when it is imported.
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    return path


def ask(path: Path, reply: Reply | None) -> tuple[Version | None, list[str]]:
    """Ask an API server that gives this reply, or one that isn't there; return the paths asked."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        assert reply is not None
        return reply()

    async def scenario() -> Version | None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            path.write_text(kubeconfig(f"http://{host}:{port}"))
            if reply is None:
                await runner.cleanup()
            with anyio.fail_after(20):
                return await kubelet_version("node-a")
        finally:
            await runner.cleanup()

    return anyio.run(scenario), asked


@pytest.mark.parametrize(
    ("text", "version"),
    [("v1.36.4", (1, 36)), ("v1.35.8+k3s1", (1, 35)), ("v1.37.0-rc.0", (1, 37))],
)
def test_the_version_of_the_nodes_kubelet_is_learnt(
    kubeconfig_file: Path, text: str, version: Version
) -> None:
    found, asked = ask(kubeconfig_file, lambda: web.json_response(node(text)))
    assert found == version
    assert asked == ["/api/v1/nodes/node-a"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(None, "", id="refused connection"),
        pytest.param(lambda: web.json_response({}, status=403), "Forbidden", id="403"),
        pytest.param(lambda: web.json_response({}, status=404), "Not Found", id="404"),
        pytest.param(lambda: web.json_response({}, status=500), "", id="500"),
        pytest.param(lambda: web.json_response(node("banana")), "banana", id="no version"),
        pytest.param(lambda: web.json_response({}), "", id="no status"),
        pytest.param(lambda: web.json_response([]), "", id="a list"),
        pytest.param(lambda: web.json_response({"status": {}}), "", id="no node info"),
        pytest.param(lambda: web.Response(text="<html>"), "", id="not JSON"),
        pytest.param(
            lambda: web.Response(text="{", content_type="application/json"), "", id="half JSON"
        ),
    ],
)
def test_what_can_not_be_learnt_is_none_and_the_log_says_why(
    kubeconfig_file: Path, caplog: pytest.LogCaptureFixture, reply: Reply | None, reason: str
) -> None:
    with caplog.at_level(logging.WARNING, logger="hami_mock"):
        version, _ = ask(kubeconfig_file, reply)
    assert version is None
    (record,) = (r for r in caplog.records if r.name == "hami_mock.cluster.kubernetes")
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("can't find out the kubelet's version on node node-a: ")
    assert reason in record.getMessage()


@pytest.mark.parametrize("text", ["", "{", "[]", "a: b", "current-context: c", None])
def test_a_kubeconfig_of_no_use_is_none_and_a_line_in_the_log(
    kubeconfig_file: Path, caplog: pytest.LogCaptureFixture, text: str | None
) -> None:
    if text is not None:
        kubeconfig_file.write_text(text)
    assert anyio.run(kubelet_version, "node-a") is None
    assert "can't find out the kubelet's version on node node-a" in caplog.text


def test_a_pod_without_its_token_is_none_and_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    assert anyio.run(kubelet_version, "node-a") is None
    assert "can't find out the kubelet's version" in caplog.text


def test_there_is_an_api_server_in_a_pod_and_where_a_kubeconfig_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not is_configured()
    with monkeypatch.context() as patch:
        patch.setenv("KUBECONFIG", "/x")
        assert is_configured()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert is_configured()
