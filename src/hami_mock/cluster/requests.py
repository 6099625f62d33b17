"""Single requests to the API server, and what its refusals mean."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hami_mock.errors import Away, ClusterError, Conflict, NotAllowed, NotThere
from hami_mock.kit.text import cut

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from kubernetes_asyncio.client import ApiClient

REQUEST_SECONDS = 5.0
_METHODS = {
    # With this kind of patch alone, null removes a key.
    "patch": ("PATCH", "application/merge-patch+json"),
    "create": ("POST", "application/json"),
}
_MEANINGS = {401: NotAllowed, 403: NotAllowed, 404: NotThere, 409: Conflict}


@dataclass(frozen=True)
class Request:
    """What is asked for: a verb as Kubernetes' roles have it, and the things it is about."""

    verb: str
    resource: str
    name: str = ""
    namespace: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        space = f"/namespaces/{self.namespace}" if self.namespace else ""
        single = f"/{self.name}" if self.verb in ("get", "patch") else ""
        return f"/api/v1{space}/{self.resource}{single}"

    def __str__(self) -> str:
        whole_name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.verb} {self.resource} {whole_name}".rstrip()


@asynccontextmanager
async def sending(
    client: "ApiClient",
    request: Request,
    body: Mapping[str, Any] | None = None,
    silence: float | None = None,
) -> "AsyncIterator[ClientResponse]":
    """Send a request; yield the answer, if it is no refusal. Raises ClusterError.

    It must be there and read within a few seconds; with `silence`, reading has no end, and only
    the time between two pieces is bounded.
    """
    from aiohttp import ClientTimeout

    timeout = ClientTimeout(total=REQUEST_SECONDS)
    if silence:
        timeout = ClientTimeout(
            connect=REQUEST_SECONDS, sock_connect=REQUEST_SECONDS, sock_read=silence
        )
    method, content_type = _METHODS.get(request.verb, ("GET", "application/json"))
    try:
        response = await client.call_api(
            request.path,
            method,
            query_params=list(request.query.items()),
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=timeout,
        )
    except Exception as error:
        # aiohttp's, the library's and the token file's errors have no other root in common.
        raise _away(request, error) from error
    async with response:
        if response.status >= 300:
            text = b"\n".join([line async for line in receive(request, response)])
            raise refusal(request, response.status, _message(text) or response.reason or "")
        yield response


async def receive(request: Request, response: "ClientResponse") -> AsyncIterator[bytes]:
    """Yield the lines of an answer, however long they are. Raises Away if it breaks off.

    aiohttp's own way to read lines refuses those that are longer than its buffer.
    """
    from aiohttp import ClientError

    pieces: list[bytes] = []
    try:
        async for chunk in response.content.iter_any():
            *ended, rest = chunk.split(b"\n")
            for line in ended:
                yield b"".join((*pieces, line))
                pieces.clear()
            pieces.append(rest)
    except (ClientError, TimeoutError, OSError) as error:
        raise _away(request, error) from error
    if any(pieces):
        yield b"".join(pieces)


def refusal(request: Request, status: int, message: str) -> ClusterError:
    text = f"can't {request}: {cut(message)} ({status})"
    if status in (401, 403):
        text += f"; the role needs the verb {request.verb} for {request.resource}"
    return _MEANINGS.get(status, Away)(text)


def _away(request: Request, error: Exception) -> Away:
    return Away(f"can't {request}: {str(error) or type(error).__name__}")


def _message(text: bytes) -> str:
    """Return what the server's Status object says, or the text itself if it is none."""
    try:
        status = json.loads(text)
    except ValueError:
        return text.decode(errors="replace")
    return str(status.get("message", "")) if isinstance(status, dict) else ""
