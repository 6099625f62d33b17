"""Where the API server is, and who asks it."""

import math
import os
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hami_mock.cluster.proxies import proxy_for
from hami_mock.kit.text import cut

Headers = tuple[tuple[str, str], ...]


class AccessError(Exception):
    """Nothing says where the API server is or who asks, or what says so can't be used."""


@dataclass(frozen=True)
class Endpoint:
    """Where the API server is, and what proves who is at each end of a connection.

    - authority: certificates that it may be signed by, as PEM; without, those of the system
    - server_name: what its certificate is for, if not the URL's host
    - certificate, key: ours, as PEM
    """

    url: str
    authority: bytes = field(default=b"", repr=False)
    is_verified: bool = True
    server_name: str = ""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    proxy: str = field(default="", repr=False)


@dataclass(frozen=True)
class Access:
    """An endpoint, the headers that say who asks, and the time when both should be read again."""

    endpoint: Endpoint
    headers: Headers = field(default=(), repr=False)
    expires: float = math.inf


Load = Callable[[], Awaitable[Access]]
"""Reads it all, again and again. Raises AccessError, OSError."""


def checked_url(url: str, place: str) -> str:
    """Return the URL of a server or a proxy. Raises AccessError for what is none."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or not url.isascii() or not url.isprintable() or " " in url:
        raise AccessError(f"{place}: {cut(url)!r} is not an http or https URL")
    return url.rstrip("/")


def proxy_of(url: str, said: str, place: str) -> str:
    """Return the proxy that is named, or else what the environment has for a URL."""
    found = said or proxy_for(url, os.environ)
    return checked_url(found, place if said else "the proxy of the environment") if found else ""


def bearer(token: str, place: str) -> str:
    """Return the header for a token. Raises AccessError if there is none."""
    token = token.strip()
    if not token:
        raise AccessError(f"{place}: the token is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        # Not repeated: it may be half a secret.
        raise AccessError(f"{place}: the token contains characters that no token can have")
    return f"Bearer {token}"


def basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"
