"""Single requests to the API server, and what its refusals mean."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hami_mock.errors import Away, ClusterError, Conflict, NotAllowed, NotThere
from hami_mock.kit.text import cut

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from kubernetes_asyncio.client import ApiClient

REQUEST_SECONDS = 5.0
# An API server takes no object over 3 MB; what has no end must not fill the memory.
MOST_OF_AN_OBJECT = 8 * 2**20
MOST_OF_A_LIST = 64 * 2**20
_MOST_RETRY_SECONDS = 60.0
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
        # Quoted: the name of a pod may be what somebody wrote into an annotation.
        space = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        single = f"/{quote(self.name, safe='')}" if self.verb in ("get", "patch") else ""
        return f"/api/v1{space}/{self.resource}{single}"

    def __str__(self) -> str:
        whole_name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.verb} {self.resource} {cut(whole_name)}".rstrip()

    def away(self, reason: str) -> Away:
        return Away(f"can't {self}: {cut(reason)}")

    def refusal(self, status: object, message: str, retry_after: str = "") -> ClusterError:
        """Return the error that a status means."""
        text = f"can't {self}: {cut(message)} ({cut(str(status))})"
        if status == 401:
            text += "; the token isn't accepted: it has expired, or is for another cluster"
        if status == 403:
            text += f"; the role needs the verb {self.verb} for {self.resource}"
        error = _MEANINGS.get(status, Away)(text) if isinstance(status, int) else Away(text)
        if retry_after.isascii() and retry_after.isdecimal():
            # The date that may stand here too is of a clock that isn't ours.
            error.retry_after = min(float(retry_after[:9]), _MOST_RETRY_SECONDS)
        return error


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

    total, connect = None if silence else REQUEST_SECONDS, REQUEST_SECONDS
    timeout = ClientTimeout(total, connect, sock_read=silence, sock_connect=connect)
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
        raise request.away(str(error) or type(error).__name__) from error
    async with response:
        if response.status >= 300:
            text = await read(request, response)
            raise request.refusal(
                response.status,
                _message(text) or response.reason or "",
                response.headers.get("Retry-After", ""),
            )
        yield response


async def read(request: Request, response: "ClientResponse") -> bytes:
    """Return an answer as a whole. Raises Away if it breaks off, or is too long."""
    whole = bytearray()
    async for chunk in _chunks(request, response):
        whole += chunk
        _check_length(request, whole)
    return bytes(whole)


async def receive(request: Request, response: "ClientResponse") -> AsyncIterator[bytes]:
    """Yield the lines of an answer. Raises Away if it breaks off, or a line is too long.

    aiohttp's own way to read lines refuses those that are longer than its buffer.
    """
    line = bytearray()
    async for chunk in _chunks(request, response):
        *ended, rest = chunk.split(b"\n")
        for end in ended:
            yield bytes(line + end)
            line.clear()
        line += rest
        _check_length(request, line)
    if line:
        yield bytes(line)


async def _chunks(request: Request, response: "ClientResponse") -> AsyncIterator[bytes]:
    from aiohttp import ClientError

    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (ClientError, TimeoutError, OSError) as error:
        raise request.away(str(error) or type(error).__name__) from error


def _check_length(request: Request, answer: bytearray) -> None:
    most = MOST_OF_A_LIST if request.verb == "list" else MOST_OF_AN_OBJECT
    if len(answer) > most:
        raise request.away(f"the answer is longer than {most} bytes")


def _message(text: bytes) -> str:
    """Return what the server's Status object says, or the text itself if it is none."""
    try:
        status = json.loads(text)
    except (ValueError, RecursionError):
        return text.decode(errors="replace")
    return str(status.get("message", "")) if isinstance(status, dict) else ""
