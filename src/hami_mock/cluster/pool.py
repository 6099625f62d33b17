"""Connections to one endpoint, kept for the next request."""

import os
import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from urllib.parse import unquote, urlsplit

import httpcore2

from hami_mock.cluster.access import Endpoint, Headers

_KEEP_SECONDS = 15.0
_MOST_IDLE = 64


class Pool:
    """Opens connections as they are needed. Raises OSError, ValueError if none ever could be."""

    def __init__(self, endpoint: Endpoint) -> None:
        parts = urlsplit(endpoint.url)
        self._url = endpoint.url
        # The library would leave out the brackets of an IPv6 address.
        self._host = ("Host", parts.netloc.rpartition("@")[2])
        self._extensions = {"sni_hostname": endpoint.server_name} if endpoint.server_name else {}
        self._connections = httpcore2.AsyncConnectionPool(
            ssl_context=_tls(endpoint) if parts.scheme == "https" else None,
            proxy=_proxy(endpoint.proxy) if endpoint.proxy else None,
            # A watch has one for itself.
            max_connections=None,
            max_keepalive_connections=_MOST_IDLE,
            keepalive_expiry=_KEEP_SECONDS,
            network_backend=httpcore2.AnyIOBackend(),
        )

    def send(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | None,
        seconds: Mapping[str, float],
    ) -> AbstractAsyncContextManager[httpcore2.Response]:
        """Send a request; `seconds` bound what it says: connect, write, and a silence in read."""
        return self._connections.stream(
            method,
            self._url + target,
            # Somebody's name may have any character.
            headers=[(name.encode(), value.encode()) for name, value in (self._host, *headers)],
            content=body,
            extensions={**self._extensions, "timeout": seconds},
        )

    async def close(self) -> None:
        await self._connections.aclose()


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    # A bundle may have comments in any language between its certificates.
    authority = endpoint.authority.decode("ascii", errors="ignore")
    context = ssl.create_default_context(cadata=authority or None)
    # From Python 3.13 on this is the default, and many a cluster's certificates, which kubectl
    # takes, don't stand it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not endpoint.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if endpoint.certificate:
        _load_certificate(context, endpoint.certificate, endpoint.key)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # Python reads it from files only; this one never reaches a disk.
    file = os.memfd_create("client certificate")
    try:
        with open(file, "wb", closefd=False) as writer:
            writer.write(certificate.rstrip() + b"\n" + key)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _proxy(url: str) -> httpcore2.Proxy:
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore2.Proxy(f"{parts.scheme}://{host}{port}", auth=login)
