"""The API server as a pod finds it: its address in the environment, the token in a volume."""

import os
import time
from pathlib import Path

from hami_mock.cluster.access import Access, AccessError, Endpoint, bearer, checked_url, proxy_of
from hami_mock.kit.files import MOST_BYTES, read_bytes

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KEEP_SECONDS = 60.0
"""The kubelet puts a new token there before the old one expires, and a new authority."""


def is_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ


async def load() -> Access:
    """Read the service account's token and authority. Raises AccessError."""
    url = _url(os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT"))
    endpoint = Endpoint(url, _read("ca.crt"), proxy=proxy_of(url, "", ""))
    token = _read("token").decode(errors="replace")
    header = ("Authorization", bearer(token, str(FOLDER / "token")))
    return Access(endpoint, (header,), time.time() + _KEEP_SECONDS)


def _url(host: str | None, port: str | None) -> str:
    if not host or not port:
        raise AccessError("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is empty")
    whole = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return checked_url(f"https://{whole}", "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT")


def _read(name: str) -> bytes:
    path = FOLDER / name
    try:
        content = read_bytes(str(path), MOST_BYTES)
    except OSError as error:
        hint = "does the pod mount its service account's token?"
        raise AccessError(f"{path} can't be read: {error.strerror}; {hint}") from error
    if not content:
        raise AccessError(f"{path} is empty")
    return content
