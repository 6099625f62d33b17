"""How the API server is reached: certificates, names, proxies, and connections that are kept."""

import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme
from aiohttp import web

from hami_mock.cluster import pool, requests
from hami_mock.cluster.access import Endpoint
from hami_mock.cluster.kubernetes import Kubernetes
from hami_mock.errors import Away, NotThere, StartError
from tests.integration.access_rig import (
    Doorkeeper,
    Part,
    data,
    proxy,
    server_tls,
    write_kubeconfig,
)
from tests.integration.fake_api_server import serving


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(30):
            await scenario()

    anyio.run(bounded)


def ask(config: Path, tls: Any, cluster: Part, user: Part | None = None) -> Doorkeeper:
    """Ask a server for its node by a kubeconfig that says this; return the server."""
    server = Doorkeeper()

    async def scenario() -> None:
        async with serving(server, tls) as url:
            write_kubeconfig(config, {"server": url, **cluster}, user)
            async with Kubernetes() as kubernetes:
                await kubernetes.node("n1")

    run(scenario)
    return server


def test_the_server_must_be_signed_by_the_authority(config: Path, authority: trustme.CA) -> None:
    tls = server_tls(authority, "127.0.0.1")
    server = ask(config, tls, {"certificate-authority-data": data(authority.cert_pem)})
    assert server.requests == ["get nodes n1"]
    another = {"certificate-authority-data": data(trustme.CA().cert_pem)}
    with pytest.raises(Away, match=r"get nodes n1: .*certificate verify failed"):
        ask(config, tls, another)
    with pytest.raises(Away, match=r"get nodes n1: .*certificate verify failed"):
        ask(config, tls, {})  # the system's own know nothing of it
    assert ask(config, tls, {**another, "insecure-skip-tls-verify": True}).requests


@pytest.mark.parametrize("name", [".x", "x" * 100, "ä" * 100])
def test_a_name_that_no_server_can_have_is_told(
    config: Path, authority: trustme.CA, name: str
) -> None:
    tls = server_tls(authority, "127.0.0.1")
    with pytest.raises(Away, match="can't get nodes n1: "):
        ask(config, tls, {"tls-server-name": name})
    if name.isascii():
        with pytest.raises(Away, match="can't get nodes n1: "):
            ask(config, tls, {"server": f"https://{name}"})


def test_a_bundle_may_have_comments(config: Path, authority: trustme.CA) -> None:
    bundle = "# größer\n".encode() + trustme.CA().cert_pem.bytes() + authority.cert_pem.bytes()
    said = {"certificate-authority-data": data(bundle)}
    assert ask(config, server_tls(authority, "127.0.0.1"), said).requests


def test_the_certificate_must_be_for_the_server(config: Path, authority: trustme.CA) -> None:
    tls = server_tls(authority, "kubernetes.default")
    trusting = {"certificate-authority-data": data(authority.cert_pem)}
    with pytest.raises(Away, match="certificate verify failed"):
        ask(config, tls, trusting)
    assert ask(config, tls, {**trusting, "tls-server-name": "kubernetes.default"}).requests


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_client_certificate_is_shown_and_its_key_is_in_no_file(
    config: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = config.parent / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    clients = trustme.CA()
    tls = server_tls(authority, "127.0.0.1", clients=clients)
    ours = clients.issue_cert("jane@example.com", common_name="jane")
    trusting = {"certificate-authority-data": data(authority.cert_pem)}
    user = {
        "client-certificate-data": data(ours.cert_chain_pems[0]),
        "client-key-data": data(ours.private_key_pem),
    }
    files = open_files()
    assert ask(config, tls, trusting, user).requests
    assert open_files() == files
    assert not list(folder.iterdir())
    with pytest.raises(Away, match="get nodes n1"):
        ask(config, tls, trusting)


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority-data": data(b"no certificate")}, {}),
        ({}, {"client-certificate-data": data(b"x"), "client-key-data": data(b"y")}),
    ],
)
def test_certificates_that_are_none_are_told_at_the_start(
    config: Path, authority: trustme.CA, cluster: Part, user: Part
) -> None:
    with pytest.raises(StartError, match="the API server can't be used: "):
        ask(config, server_tls(authority, "127.0.0.1"), cluster, user)


@pytest.mark.parametrize("is_tls", [True, False])
def test_a_proxy_is_asked_and_told_who_we_are(
    config: Path, authority: trustme.CA, is_tls: bool
) -> None:
    async def scenario() -> None:
        server = Doorkeeper()
        tls = server_tls(authority, "127.0.0.1") if is_tls else None
        async with serving(server, tls) as url, proxy() as between:
            cluster = {
                "server": url,
                "proxy-url": f"http://jane:p%40ss@127.0.0.1:{between.port}",
                "certificate-authority-data": data(authority.cert_pem),
            }
            write_kubeconfig(config, cluster, {"token": "secret"})
            async with Kubernetes() as kubernetes:
                await kubernetes.node("n1")
            assert server.requests == ["get nodes n1"]
            (head,) = between.heads
            place = url.partition("://")[2]
            assert head.startswith(f"CONNECT {place} " if is_tls else f"GET {url}/api/v1/nodes/n1 ")
            assert "Proxy-Authorization: Basic amFuZTpwQHNz" in head
            assert ("secret" in head) is not is_tls

    run(scenario)


def test_a_connection_is_kept_until_the_server_ends_it(config: Path) -> None:
    async def scenario() -> None:
        server = Doorkeeper()
        async with serving(server) as url:
            write_kubeconfig(config, {"server": url})
            async with Kubernetes() as kubernetes:
                for _ in range(3):
                    await kubernetes.node("n1")
                first = server.asked[0].transport
                assert first is not None
                assert {request.transport for request in server.asked} == {first}
                first.close()
                await anyio.wait_all_tasks_blocked()
                await kubernetes.node("n1")
                assert server.asked[-1].transport is not first

    run(scenario)


def test_a_request_says_who_sent_it(config: Path) -> None:
    server = ask(config, None, {}, {"token": "t", "as": "jäne"})
    headers = server.asked[0].headers
    assert headers["User-Agent"].startswith("hami-mock/")
    assert headers["Authorization"] == "Bearer t"
    assert headers["Impersonate-User"] == "jäne"
    assert headers["Accept"] == "application/json"


def test_a_name_that_no_header_can_have_is_told(config: Path) -> None:
    with pytest.raises(Away, match="can't get nodes n1: Illegal header value"):
        ask(config, None, {}, {"as": "jane\nX-Other: 1"})


def test_a_server_may_have_a_path(config: Path) -> None:
    server = Doorkeeper()

    async def scenario() -> None:
        async with serving(server) as url:
            write_kubeconfig(config, {"server": f"{url}/k8s/clusters/c/"})
            async with Kubernetes() as kubernetes:
                with pytest.raises(NotThere):
                    await kubernetes.node("n1")

    run(scenario)
    assert server.asked[0].path == "/k8s/clusters/c/api/v1/nodes/n1"


def test_certificates_need_not_have_what_only_python_asks_for() -> None:
    # From 3.13 on it does so by default; kubectl takes certificates without it.
    context = pool._tls(Endpoint("https://api"))
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.check_hostname


class Dripping(Doorkeeper):
    async def handle(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionResetError):
            while True:
                await response.write(b" ")
                await anyio.sleep(0.01)
        return response


def test_an_answer_that_drips_for_ever_is_not_waited_for(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "REQUEST_SECONDS", 0.2)

    async def scenario() -> None:
        async with serving(Dripping()) as url:
            write_kubeconfig(config, {"server": url})
            async with Kubernetes() as kubernetes:
                with pytest.raises(Away, match=r"can't get nodes n1: no answer within 0\.2 s"):
                    await kubernetes.node("n1")

    run(scenario)
