"""Certificates, keys and tokens of one cluster."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from .commands import run
from .layout import API_PORT, API_SERVICE_IP, NODE_IP, NODE_NAME, PKI
from .sandbox import Sandbox

VALID_DAYS = "2"


@dataclass(frozen=True)
class Identity:
    """Somebody the API server knows by a token."""

    file_name: str
    user: str
    group: str


ADMIN = Identity("admin", "e2e-admin", "system:masters")
CONTROLLER_MANAGER = Identity("controller-manager", "system:kube-controller-manager", "")
SCHEDULER = Identity("scheduler", "system:kube-scheduler", "")
KUBELET = Identity("kubelet", f"system:node:{NODE_NAME}", "system:nodes")
IDENTITIES = (ADMIN, CONTROLLER_MANAGER, SCHEDULER, KUBELET)

CA_CERTIFICATE = PKI / "ca.crt"
CA_KEY = PKI / "ca.key"
SERVING_CERTIFICATE = PKI / "apiserver.crt"
SERVING_KEY = PKI / "apiserver.key"
ACCOUNT_KEY = PKI / "service-accounts.key"
TOKENS = PKI / "tokens.csv"


def kubeconfig(identity: Identity) -> Path:
    return PKI / f"{identity.file_name}.kubeconfig"


def create(sandbox: Sandbox) -> None:
    """Write everything into the sandbox's state folder."""
    _certificates(sandbox)
    rows = []
    for identity in IDENTITIES:
        token = secrets.token_urlsafe(32)
        groups = f',"{identity.group}"' if identity.group else ""
        rows.append(f"{token},{identity.user},{identity.file_name}{groups}")
        _write_kubeconfig(sandbox, identity, token)
    sandbox.outside(TOKENS).write_text("\n".join(rows) + "\n")


def _certificates(sandbox: Sandbox) -> None:
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
    addresses = [API_SERVICE_IP, NODE_IP, "127.0.0.1"]
    alternatives = [f"DNS:{name}" for name in names] + [f"IP:{ip}" for ip in addresses]
    request = ["openssl", "req", "-x509", *new_key, "-days", VALID_DAYS]
    run(sandbox.argv([*request, "-subj", "/CN=e2e-ca", "-keyout", CA_KEY, "-out", CA_CERTIFICATE]))
    run(
        sandbox.argv(
            [
                *request,
                *("-subj", "/CN=kube-apiserver"),
                *("-CA", CA_CERTIFICATE, "-CAkey", CA_KEY),
                *("-addext", f"subjectAltName={','.join(alternatives)}"),
                *("-addext", "basicConstraints=critical,CA:FALSE"),
                *("-keyout", SERVING_KEY, "-out", SERVING_CERTIFICATE),
            ]
        )
    )
    run(
        sandbox.argv(
            ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", ACCOUNT_KEY]
        )
    )


def _write_kubeconfig(sandbox: Sandbox, identity: Identity, token: str) -> None:
    # The certificate is inlined: kubectl reads this file from outside the sandbox, too.
    authority = run(["openssl", "base64", "-A", "-in", sandbox.outside(CA_CERTIFICATE)]).strip()
    cluster = {
        "server": f"https://127.0.0.1:{API_PORT}",
        "certificate-authority-data": authority,
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": identity.user, "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": identity.user}}],
    }
    sandbox.outside(kubeconfig(identity)).write_text(json.dumps(document))
