"""Credentials that change while the agent runs, and what is loaded to use them."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import pytest
import trustme

from hami_mock.cluster import connection, service_account
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import Away, Unauthenticated
from tests.integration.access_rig import Doorkeeper, data, server_tls, write_kubeconfig
from tests.integration.fake_api_server import serving

Scenario = Callable[[Doorkeeper, Kubernetes], Awaitable[None]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_LEAST_SECONDS", 0.0)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a service account; its token is t1."""
    monkeypatch.setattr(service_account, "FOLDER", tmp_path)
    (tmp_path / "token").write_text("t1")
    return tmp_path


def in_a_pod(account: Path, scenario: Scenario) -> None:
    """Run with a server that a pod would find; it takes the token t1."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(account / "ca.crt"))

    async def bounded() -> None:
        server = Doorkeeper(tokens={"Bearer t1"})
        with anyio.fail_after(30), pytest.MonkeyPatch.context() as patch:
            async with serving(server, server_tls(authority, "127.0.0.1")) as url:
                place = urlsplit(url)
                patch.setenv("KUBERNETES_SERVICE_HOST", str(place.hostname))
                patch.setenv("KUBERNETES_SERVICE_PORT", str(place.port))
                async with Kubernetes() as kubernetes:
                    await scenario(server, kubernetes)

    anyio.run(bounded)


def test_a_pods_token_that_expires_is_read_again_in_time(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_account, "_KEEP_SECONDS", 0.0)

    async def scenario(server: Doorkeeper, kubernetes: Kubernetes) -> None:
        await kubernetes.node("n1")
        (account / "token").write_text("t2")
        server.tokens = {"Bearer t2"}
        await kubernetes.node("n1")
        assert server.turned_away == 0

    in_a_pod(account, scenario)


def test_a_token_that_is_refused_is_read_again_at_once(account: Path) -> None:
    async def scenario(server: Doorkeeper, kubernetes: Kubernetes) -> None:
        await kubernetes.node("n1")
        (account / "token").write_text("t2")
        await kubernetes.node("n1")  # the old one is good for a while
        server.tokens = {"Bearer t2"}
        await kubernetes.node("n1")
        assert server.turned_away == 1

    in_a_pod(account, scenario)


def test_a_token_that_stays_refused_is_told(account: Path) -> None:
    async def scenario(server: Doorkeeper, kubernetes: Kubernetes) -> None:
        server.tokens = {"Bearer another"}
        with pytest.raises(Unauthenticated, match="the token isn't accepted"):
            await kubernetes.node("n1")
        assert server.turned_away == 2

    in_a_pod(account, scenario)


def test_a_token_that_is_gone_is_told_and_found_again(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_account, "_KEEP_SECONDS", 0.0)

    async def scenario(_: Doorkeeper, kubernetes: Kubernetes) -> None:
        (account / "token").unlink()
        with pytest.raises(Away, match=r"get nodes n1: .*token can't be read"):
            await kubernetes.node("n1")
        (account / "token").write_text("t1")
        await kubernetes.node("n1")

    in_a_pod(account, scenario)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def counting_plugin(folder: Path) -> dict[str, object]:
    """A plugin whose tokens are 1, 2, 3, …"""
    path = folder / "plugin"
    credential = r"{\"apiVersion\": \"v1\", \"kind\": \"ExecCredential\", \"status\": "
    path.write_text(
        "#!/bin/sh\n"
        'echo >>"$0.runs"\n'
        f'echo "{credential}{{\\"token\\": \\"$(wc -l <"$0.runs")\\"}}}}"\n'
    )
    path.chmod(0o755)
    return {"exec": {"apiVersion": "v1", "command": str(path)}}


def runs(folder: Path) -> int:
    return len((folder / "plugin.runs").read_text().splitlines())


def with_plugin(config: Path, scenario: Scenario) -> None:
    async def bounded() -> None:
        server = Doorkeeper(tokens={"Bearer 1"})
        with anyio.fail_after(30):
            async with serving(server) as url:
                write_kubeconfig(config, {"server": url}, counting_plugin(config.parent))
                async with Kubernetes() as kubernetes:
                    await scenario(server, kubernetes)

    anyio.run(bounded)


def test_a_plugin_is_run_again_when_its_token_is_refused_and_only_then(config: Path) -> None:
    async def scenario(server: Doorkeeper, kubernetes: Kubernetes) -> None:
        for _ in range(3):
            await kubernetes.node("n1")
        assert runs(config.parent) == 1
        server.tokens = {"Bearer 2"}
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(kubernetes.node, "n1")
        assert runs(config.parent) == 2

    with_plugin(config, scenario)


def test_a_plugin_is_not_run_in_a_hot_loop(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_LEAST_SECONDS", 600.0)

    async def scenario(server: Doorkeeper, kubernetes: Kubernetes) -> None:
        server.tokens = {"Bearer none"}
        for _ in range(3):
            with pytest.raises(Unauthenticated):
                await kubernetes.node("n1")
        assert runs(config.parent) == 1

    with_plugin(config, scenario)


def test_a_server_that_moved_is_found_by_the_kubeconfig_that_says_so(config: Path) -> None:
    async def scenario() -> None:
        old, new = Doorkeeper(), Doorkeeper()
        with anyio.fail_after(30):
            async with serving(old) as url, serving(new) as new_url:
                write_kubeconfig(config, {"server": url}, {"token": "t"})
                async with Kubernetes() as kubernetes:
                    await kubernetes.node("n1")
                    old.tokens = {"Bearer nobody's"}
                    write_kubeconfig(config, {"server": new_url}, {"token": "t"})
                    await kubernetes.node("n1")
        assert old.requests == new.requests == ["get nodes n1"]

    anyio.run(scenario)


LOADED = """
import sys, anyio
from pathlib import Path
from hami_mock.cluster import service_account
from hami_mock.cluster.kubernetes import Kubernetes
service_account.FOLDER = Path(sys.argv[1])

async def ask():
    async with Kubernetes() as kubernetes:
        await kubernetes.node("n1")

anyio.run(ask)
heavy = ("kubernetes_asyncio", "aiohttp", "urllib3", "http.client", "yaml")
print([name for name in heavy if name in sys.modules])
"""


def loaded(folder: Path, **environment: str) -> str:
    """Ask for the node in a fresh process, and tell what was loaded for that."""
    ran = subprocess.run(
        [sys.executable, "-c", LOADED, str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, **environment},
    )
    return ran.stdout.strip()


def test_what_talks_to_the_server_is_light(account: Path, config: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(account / "ca.crt"))

    async def scenario() -> None:
        async with serving(Doorkeeper(), server_tls(authority, "127.0.0.1")) as url:
            place = urlsplit(url)
            pod = {
                "KUBERNETES_SERVICE_HOST": str(place.hostname),
                "KUBERNETES_SERVICE_PORT": str(place.port),
            }
            in_pod = await anyio.to_thread.run_sync(lambda: loaded(account, **pod))
            write_kubeconfig(
                config, {"server": url, "certificate-authority-data": data(authority.cert_pem)}
            )
            by_config = await anyio.to_thread.run_sync(lambda: loaded(account))
        assert in_pod == "[]"
        assert by_config == "['yaml']"

    anyio.run(scenario)
