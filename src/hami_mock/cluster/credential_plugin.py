"""Programs that hand out credentials: `exec` in a kubeconfig, the way to most clouds' clusters."""

import json
import math
import os
import sys
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import anyio

from hami_mock.cluster.access import AccessError, bearer
from hami_mock.cluster.kubeconfig_file import Section
from hami_mock.kit.text import cut

PATIENCE_SECONDS = 60.0
"""For a program that asks nobody anything."""
_BEFORE_EXPIRY_SECONDS = 60.0
_GROUP = "client.authentication.k8s.io"
_CLUSTER_KEYS = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")


@dataclass(frozen=True)
class Credential:
    """What says who asks: the header Authorization, or a certificate, or nothing at all."""

    header: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: float = math.inf


async def run(plugin: Section, cluster: Section) -> Credential:
    """Run the program and read what it prints. Raises AccessError."""
    version = plugin.needed("apiVersion")
    is_interactive = _is_interactive(plugin)
    info: dict[str, Any] = {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": is_interactive},
    }
    if plugin.is_set("provideClusterInfo"):
        info["spec"]["cluster"] = _cluster_info(cluster)
    added = {each.needed("name"): each.text("value") for each in plugin.sections("env")}
    environment = {**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    command = [_command(plugin), *plugin.texts("args")]
    printed = await _output(plugin, command, environment, is_interactive)
    return read(plugin, printed, version)


def _is_interactive(plugin: Section) -> bool:
    mode = plugin.text("interactiveMode")
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not is_terminal:
        raise AccessError(f"{plugin.place}: the program needs a terminal, and there is none")
    return is_terminal and mode != "Never"


def _command(plugin: Section) -> str:
    command = plugin.needed("command")
    # A mere name is looked up in $PATH; a path is relative to the file, as all in it are.
    return str(plugin.folder / command) if Path(command).name != command else command


async def _output(
    plugin: Section, command: list[str], environment: dict[str, str], is_interactive: bool
) -> bytes:
    try:
        with anyio.fail_after(None if is_interactive else PATIENCE_SECONDS):
            ran = await anyio.run_process(
                command,
                stdin=sys.stdin if is_interactive else DEVNULL,
                # It may tell the user where to log in, and wait.
                stderr=None if is_interactive else PIPE,
                env=environment,
                check=False,
            )
    except TimeoutError as error:
        text = f"{plugin.place}: {command[0]} took longer than {PATIENCE_SECONDS:.0f} s"
        raise AccessError(text) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = f"; {cut(plugin.text('installHint'))}" if plugin.text("installHint") else ""
        text = f"{plugin.place}: {command[0]} can't be run: {reason}{hint}"
        raise AccessError(text) from error
    if ran.returncode:
        said = cut((ran.stderr or b"").decode(errors="replace").strip())
        raise AccessError(f"{plugin.place}: {command[0]} ended with {ran.returncode}: {said}")
    return ran.stdout


def read(plugin: Section, printed: bytes, version: str) -> Credential:
    """Read what a program printed. Raises AccessError."""
    try:
        found = json.loads(printed)
    except (ValueError, RecursionError) as error:
        raise AccessError(f"{plugin.place}: the program didn't print JSON") from error
    if not isinstance(found, dict) or found.get("kind") != "ExecCredential":
        raise AccessError(f"{plugin.place}: the program didn't print an ExecCredential")
    if found.get("apiVersion") != version:
        printed_version = cut(repr(found.get("apiVersion")))
        raise AccessError(
            f"{plugin.place}.apiVersion: the program printed {printed_version}, not {version!r}"
        )
    status = Section(found, f"{plugin.place}: what the program printed", Path()).section("status")
    token, certificate = status.text("token"), status.text("clientCertificateData")
    if not token and not certificate:
        raise AccessError(f"{status.place} has neither a token nor a clientCertificateData")
    return Credential(
        bearer(token, status.place) if token else "",
        certificate.encode(),
        status.needed("clientKeyData").encode() if certificate else b"",
        _expiry(status),
    )


def _expiry(status: Section) -> float:
    text = status.text("expirationTimestamp")
    if not text:
        return math.inf
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise AccessError(f"{status.place}.expirationTimestamp: {cut(text)!r}") from error
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - _BEFORE_EXPIRY_SECONDS


def _cluster_info(cluster: Section) -> dict[str, Any]:
    info = {key: cluster.values[key] for key in _CLUSTER_KEYS if key in cluster.values}
    if authority := cluster.content("certificate-authority"):
        info["certificate-authority-data"] = b64encode(authority).decode()
    for extension in cluster.sections("extensions"):
        if extension.text("name") == f"{_GROUP}/exec":
            info["config"] = extension.values.get("extension")
    return info
