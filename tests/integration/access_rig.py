"""An API server that looks at who asks, and all that a client needs to be let in."""

import json
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import trustme
from aiohttp import web

from tests.integration.fake_api_server import FakeApiServer

Part = dict[str, Any]


@dataclass
class Doorkeeper(FakeApiServer):
    """Lets only those in who have one of these tokens; anybody, if there are none."""

    tokens: set[str] = field(default_factory=set)
    asked: list[web.BaseRequest] = field(default_factory=list)
    turned_away: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.put("nodes", {"metadata": {"name": "n1"}})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if self.tokens and request.headers.get("Authorization") not in self.tokens:
            self.turned_away += 1
            return web.json_response({"message": "Unauthorized"}, status=401)
        return await super().handle(request)


def data(blob: trustme.Blob | bytes) -> str:
    content = blob if isinstance(blob, bytes) else blob.bytes()
    return b64encode(content).decode()


def server_tls(authority: trustme.CA, *names: str, clients: trustme.CA | None = None) -> Any:
    """A server's side: its certificate is for these names; clients need one, if an authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        clients.configure_trust(context)
    return context


def write_kubeconfig(path: Path, cluster: Part, user: Part | None = None) -> None:
    path.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": cluster}],
                "users": [{"name": "u", "user": user or {}}],
            }
        )
    )


@dataclass
class Proxy:
    """A proxy for anything: it notes what is asked of it, and passes on what follows."""

    heads: list[str] = field(default_factory=list)
    port: int = 0

    async def _serve(self, client: anyio.abc.SocketStream) -> None:
        async with client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await client.receive()
            self.heads.append(head.decode())
            method, target, _ = head.decode().split(" ", 2)
            place = target if method == "CONNECT" else target.split("/")[2]
            host, _, port = place.rpartition(":")
            async with await anyio.connect_tcp(host, int(port)) as server:
                if method == "CONNECT":
                    await client.send(b"HTTP/1.1 200 Here you are\r\n\r\n")
                else:
                    await server.send(head)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_pump, client, server)
                    tasks.start_soon(_pump, server, client)


async def _pump(source: anyio.abc.SocketStream, target: anyio.abc.SocketStream) -> None:
    try:
        async for chunk in source:
            await target.send(chunk)
        await target.send_eof()
    except (anyio.BrokenResourceError, OSError):
        await target.aclose()


@asynccontextmanager
async def proxy() -> AsyncIterator[Proxy]:
    found = Proxy()
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        found.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.start_soon(listener.serve, found._serve)
        yield found
        tasks.cancel_scope.cancel()
