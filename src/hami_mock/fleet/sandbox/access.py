"""Who the API server knows, by tokens, and the kubeconfig of each."""

import base64
import json
import secrets
from collections.abc import Iterable
from pathlib import Path

ADMIN = "admin"


def write_tokens(file: Path, users: Iterable[str]) -> dict[str, str]:
    """Write the API server's token file; return each user's token. All of them may do all."""
    tokens = {user: secrets.token_urlsafe(32) for user in users}
    rows = [f'{token},{user},{user},"system:masters"\n' for user, token in tokens.items()]
    _write_secret(file, "".join(rows))
    return tokens


def write_kubeconfig(file: Path, server: str, authority: Path, token: str) -> None:
    """Write the file by which a user reaches the API server; the certificate is in it."""
    certificate = base64.b64encode(authority.read_bytes()).decode()
    name = "hami-mock-sandbox"
    cluster = {"server": server, "certificate-authority-data": certificate}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    _write_secret(file, json.dumps(document, indent=1))


def _write_secret(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)
