import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from aiohttp import web

from hami_mock.cluster.kubernetes import is_configured
from hami_mock.kubelet.limits import Version
from hami_mock.node.ways import NO_PERMISSION, Permission
from hami_mock.settings.settings import Settings, load
from hami_mock.sources import configured, host
from hami_mock.sources.host import Host
from tests.unit.builders import resource_named

_T = TypeVar("_T")

Reply = Callable[[], web.Response]

ALLOWED = Permission(is_allowed=True)

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
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def settings_of(flags: dict[str, str]) -> Settings:
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    return load({"node-name": "node-a", **named})


async def learn(if_unknown: Permission = NO_PERMISSION, **flags: str) -> Host:
    return await host.ask(settings_of(flags), if_unknown)


async def plan(**flags: str) -> tuple[int, Version | None]:
    """The factor of gpumem, and the version that it was chosen for."""
    planned, known = await configured.plan(settings_of(flags))
    return resource_named(planned, "nvidia.com/gpumem").factor, known.version


def ask(
    path: Path,
    reply: Reply | None,
    status: Reply = lambda: web.json_response(node("v1.36.4")),
    **flags: str,
) -> tuple[Host, list[str]]:
    """Ask an API server that gives these replies, or one that isn't there; return the paths asked.

    `status` is what it replies to a patch of the node's status.
    """
    return against(path, reply, partial(learn, NO_PERMISSION, **flags), status)


def against(
    path: Path,
    reply: Reply | None,
    asking: Callable[[], Awaitable[_T]],
    status: Reply = lambda: web.json_response({}, status=403),
) -> tuple[_T, list[str]]:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path_qs)
        assert reply is not None
        return status() if request.path.endswith("/status") else reply()

    async def scenario() -> _T:
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
                return await asking()
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
    assert found == Host(version, ALLOWED)
    assert asked == ["/api/v1/nodes/node-a", "/api/v1/nodes/node-a/status?dryRun=All"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(None, "", id="refused connection"),
        pytest.param(lambda: web.json_response({}, status=403), "Forbidden", id="403"),
        pytest.param(lambda: web.json_response({}, status=404), "Not Found", id="404"),
        pytest.param(lambda: web.json_response({}, status=500), "", id="500"),
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
    kubeconfig_file: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply | None,
    reason: str,
) -> None:
    monkeypatch.setattr(host, "_AWAY_SECONDS", 0.0)
    with caplog.at_level(logging.WARNING, logger="hami_mock"):
        found, _ = ask(kubeconfig_file, reply)
    assert found.version is None
    assert not found.permission.is_allowed
    assert reason in found.permission.refusal
    (record,) = (r for r in caplog.records if r.name == "hami_mock.sources.host")
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("can't find out the kubelet's version on node node-a: ")
    assert reason in record.getMessage()


@pytest.mark.parametrize("told", [node("banana"), {"metadata": node("")["metadata"]}])
def test_a_node_that_does_not_say_its_version_is_none(
    kubeconfig_file: Path, told: dict[str, Any]
) -> None:
    found, _ = ask(kubeconfig_file, lambda: web.json_response(told))
    assert found == Host(None, ALLOWED)


def test_who_may_not_write_the_status_learns_the_rule(kubeconfig_file: Path) -> None:
    found, _ = ask(
        kubeconfig_file,
        lambda: web.json_response(node("v1.37.1")),
        status=lambda: web.json_response({"message": "no"}, status=403),
    )
    assert found.version == (1, 37)
    assert not found.permission.is_allowed
    assert "the role needs the verb patch for nodes/status" in found.permission.refusal


@pytest.mark.parametrize("units", ["plugin", "status"])
def test_nobody_asks_for_what_is_decided(kubeconfig_file: Path, units: str) -> None:
    found, asked = ask(kubeconfig_file, None, units=units, kubelet_version="1.37")
    assert found == Host((1, 37))
    assert asked == []


def test_a_server_that_is_away_for_a_moment_is_asked_again(kubeconfig_file: Path) -> None:
    replies = [
        web.json_response({}, status=503, headers={"Retry-After": "0"}),
        web.json_response(node("v1.37.1")),
    ]
    found, _ = ask(kubeconfig_file, lambda: replies.pop(0))
    assert found == Host((1, 37), ALLOWED)


def test_a_memory_factor_of_auto_asks_for_the_version_alone(kubeconfig_file: Path) -> None:
    flags = {"nvidia_memory_factor": "auto", "units": "plugin"}
    planned, asked = against(
        kubeconfig_file, lambda: web.json_response(node("v1.35.8")), partial(plan, **flags)
    )
    assert planned == (1, (1, 35))
    assert asked == ["/api/v1/nodes/node-a"]


def test_a_version_that_was_given_is_not_asked_for(kubeconfig_file: Path) -> None:
    flags = {"nvidia_memory_factor": "auto", "units": "plugin", "kubelet_version": "1.36"}
    (factor, version), asked = against(kubeconfig_file, None, partial(plan, **flags))
    assert factor > 1
    assert version == (1, 36)
    assert asked == []


def test_without_an_api_server_auto_reckons_with_the_newest() -> None:
    factor, version = anyio.run(partial(plan, nvidia_memory_factor="auto"))
    assert factor > 1
    assert version is None


def test_where_the_status_may_be_written_auto_needs_no_coarser_units(kubeconfig_file: Path) -> None:
    replies = node("v1.37.1")
    planned, asked = against(
        kubeconfig_file,
        lambda: web.json_response(replies),
        partial(plan, nvidia_memory_factor="auto"),
        status=lambda: web.json_response(replies),
    )
    assert planned == (1, (1, 37))
    assert asked[-1] == "/api/v1/nodes/node-a/status?dryRun=All"


@pytest.mark.parametrize("text", ["", "{", "[]", "a: b", "current-context: c", None])
def test_a_kubeconfig_of_no_use_is_none_and_a_line_in_the_log(
    kubeconfig_file: Path, caplog: pytest.LogCaptureFixture, text: str | None
) -> None:
    if text is not None:
        kubeconfig_file.write_text(text)
    found = anyio.run(learn)
    assert (found.version, found.permission.is_allowed) == (None, False)
    assert "can't find out the kubelet's version on node node-a" in caplog.text


def test_a_pod_without_its_token_is_none_and_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    found = anyio.run(learn)
    assert (found.version, found.permission.is_allowed) == (None, False)
    assert "can't find out the kubelet's version" in caplog.text


def test_what_a_plan_assumes_holds_where_nobody_can_be_asked() -> None:
    assert anyio.run(learn, ALLOWED) == Host(None, ALLOWED)


def test_there_is_an_api_server_in_a_pod_and_where_a_kubeconfig_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not is_configured()
    with monkeypatch.context() as patch:
        patch.setenv("KUBECONFIG", "/x")
        assert is_configured()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert is_configured()
