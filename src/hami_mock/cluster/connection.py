"""Requests to the API server over HTTP, as whoever may ask it."""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import httpcore2

from hami_mock import __version__
from hami_mock.cluster import requests, service_account
from hami_mock.cluster.access import Access, AccessError, Load
from hami_mock.cluster.pool import Pool
from hami_mock.cluster.requests import Body, Request
from hami_mock.errors import StartError, Unauthenticated
from hami_mock.kit.text import cut

_LEAST_SECONDS = 10.0
"""Between two times that the access is read: that may run a program that asks a cloud."""
_HEADERS = (("Accept", "application/json"), ("User-Agent", f"hami-mock/{__version__}"))
_NO_ANSWER = (
    # They have no other root in common. A ValueError is for a name that no server can have.
    *(httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError),
    *(httpcore2.TimeoutException, OSError, ValueError),
)


async def connect(kubeconfig: Path | None = None) -> "Connection":
    """Connect as a pod does, or as a kubeconfig says. Raises StartError if neither can be used."""
    load = _load(kubeconfig)
    try:
        access = await load()
        return Connection(load, access, Pool(access.endpoint))
    except (AccessError, OSError, ValueError) as error:
        raise StartError(f"the API server can't be used: {cut(str(error))}") from error


def _load(named: Path | None) -> Load:
    if named is None and service_account.is_pod():
        return service_account.load
    # Here: it is the only one that needs YAML.
    from hami_mock.cluster import kubeconfig

    if files := [named] if named else kubeconfig.paths():
        return kubeconfig.Kubeconfig(files).load
    raise StartError(
        "no cluster found: this is not a pod, KUBECONFIG is not set, and there is "
        f"no {kubeconfig.USER_CONFIG}"
    )


class Connection:
    """Sends requests, each bounded in time. What it does raises ClusterError.

    The access is read again when it expires, and when the server doesn't accept it any more.
    """

    def __init__(self, load: Load, access: Access, pool: Pool) -> None:
        self._load = load
        self._access = access
        self._pool = pool
        self._loaded = time.monotonic()
        self._loading = anyio.Lock()

    async def close(self) -> None:
        await self._pool.close()

    async def ask(self, request: Request, body: Body = None) -> bytes:
        """Send a request, and return the whole answer."""
        await self._keep_access(request)
        access = self._access
        try:
            return await self._ask(request, body)
        except Unauthenticated:
            if not await self._renew_access(request, access):
                raise
        return await self._ask(request, body)

    async def lines(self, request: Request, silence: float) -> AsyncGenerator[bytes, None]:
        """Yield the lines of an answer that has no end; only silence is bounded."""
        await self._keep_access(request)
        line = bytearray()
        async with (
            self._answer(request, None, silence) as response,
            aclosing(response.aiter_stream()) as chunks,
        ):
            async for chunk in chunks:
                *ended, rest = chunk.split(b"\n")
                for end in ended:
                    yield bytes(line + end)
                    line.clear()
                line += rest
                _check_length(request, line)
        if line:
            yield bytes(line)

    async def _ask(self, request: Request, body: Body) -> bytes:
        seconds = requests.REQUEST_SECONDS
        try:
            with anyio.fail_after(seconds):
                async with self._answer(request, body, seconds) as response:
                    return await _whole(request, response)
        except TimeoutError as error:
            raise request.away(f"no answer within {seconds:g} s") from error

    @asynccontextmanager
    async def _answer(
        self, request: Request, body: Body, silence: float
    ) -> AsyncIterator[httpcore2.Response]:
        """Send a request; yield the answer, if it is no refusal."""
        most = requests.REQUEST_SECONDS
        headers = (*_HEADERS, *self._access.headers)
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers = (*headers, ("Content-Type", request.content_type(body)))
        seconds = {"connect": most, "write": most, "read": silence}
        sent = self._pool.send(request.method, request.target, headers, content, seconds)
        try:
            async with sent as response:
                if response.status >= 300:
                    raise await _refusal(request, response)
                yield response
        except _NO_ANSWER as error:
            raise request.away(str(error) or type(error).__name__) from error

    async def _keep_access(self, request: Request) -> None:
        if time.time() >= self._access.expires:
            await self._renew_access(request, self._access)

    async def _renew_access(self, request: Request, old: Access) -> bool:
        """Read the access again, if nobody has meanwhile. Tell whether it is another one now."""
        async with self._loading:
            if self._access is not old:
                return True
            if time.monotonic() - self._loaded < _LEAST_SECONDS:
                return False
            self._loaded = time.monotonic()
            try:
                access = await self._load()
                new = self._pool if access.endpoint == old.endpoint else Pool(access.endpoint)
            except (AccessError, OSError, ValueError) as error:
                raise request.away(str(error)) from error
            before, self._pool, self._access = self._pool, new, access
            if before is not new:
                await before.close()
            return True


async def _whole(request: Request, response: httpcore2.Response) -> bytes:
    """Return an answer as a whole. Raises Away if it is too long."""
    whole = bytearray()
    async with aclosing(response.aiter_stream()) as chunks:
        async for chunk in chunks:
            whole += chunk
            _check_length(request, whole)
    return bytes(whole)


def _check_length(request: Request, answer: bytearray) -> None:
    if len(answer) > request.most_bytes:
        raise request.away(f"the answer is longer than {request.most_bytes} bytes")


async def _refusal(request: Request, response: httpcore2.Response) -> Exception:
    text = await _whole(request, response)
    reason = response.extensions.get("reason_phrase", b"").decode(errors="replace")
    headers = {name.lower(): value for name, value in response.headers}
    retry_after = headers.get(b"retry-after", b"").decode(errors="replace")
    return request.refusal(response.status, _message(text) or reason, retry_after)


def _message(text: bytes) -> str:
    """Return what the server's Status object says, or the text itself if it is none."""
    try:
        status = json.loads(text)
    except (ValueError, RecursionError):
        return text.decode(errors="replace")
    return str(status.get("message", "")) if isinstance(status, dict) else ""
