import json
import math
import os
import pty
import sys
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hami_mock.cluster import credential_plugin
from hami_mock.cluster.access import Access, AccessError
from tests.unit.cluster.kubeconfigs import Part, load

VERSION = "client.authentication.k8s.io/v1"


def printing(**status: Any) -> str:
    credential = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return f"printf %s '{json.dumps(credential)}'"


def run(folder: Path, script: str, cluster: Part | None = None, **plugin: object) -> Access:
    """Run a plugin that is a script beside the kubeconfig."""
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    said = {"apiVersion": VERSION, "command": "./plugin", **plugin}
    return load(folder, cluster, {"exec": said})


def test_a_token_is_what_the_program_prints(tmp_path: Path) -> None:
    access = run(tmp_path, printing(token="t"))
    assert access.headers == (("Authorization", "Bearer t"),)
    assert access.expires == math.inf


def test_the_program_is_asked_again_before_the_token_expires(tmp_path: Path) -> None:
    access = run(tmp_path, printing(token="t", expirationTimestamp="2030-01-02T03:04:05Z"))
    assert access.expires == datetime(2030, 1, 2, 3, 3, 5, tzinfo=UTC).timestamp()


def test_a_certificate_counts_more_than_the_users(tmp_path: Path) -> None:
    access = run(tmp_path, printing(clientCertificateData="CERT", clientKeyData="KEY"))
    assert access.headers == ()
    assert (access.endpoint.certificate, access.endpoint.key) == (b"CERT", b"KEY")


def test_the_program_gets_arguments_variables_and_what_it_is_for(tmp_path: Path) -> None:
    told = tmp_path / "told"
    cluster = {
        "certificate-authority-data": b64encode(b"CA").decode(),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"id": 7}}],
    }
    script = f'printf "%s|%s|" "$2" "$WHO" >{told}; printf %s "$KUBERNETES_EXEC_INFO" >>{told}\n'
    run(
        tmp_path,
        script + printing(token="t"),
        cluster,
        args=["--for", "a b"],
        env=[{"name": "WHO", "value": "me"}],
        provideClusterInfo=True,
    )
    argument, variable, info = told.read_text().split("|")
    assert (argument, variable) == ("a b", "me")
    assert json.loads(info) == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://api:6443",
                "certificate-authority-data": cluster["certificate-authority-data"],
                "config": {"id": 7},
            },
        },
    }


def test_a_mere_name_is_looked_up_in_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert run(tmp_path, printing(token="t"), command="plugin").headers


@pytest.mark.parametrize(("mode", "is_interactive"), [("IfAvailable", True), ("Never", False)])
def test_a_program_may_talk_to_the_user_at_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, is_interactive: bool
) -> None:
    own, other = pty.openpty()
    script = '[ -t 0 ] && yes=true || yes=false; echo "$yes" >"$0.told"\n' + printing(token="t")
    with os.fdopen(other) as terminal, os.fdopen(own, "wb"):
        monkeypatch.setattr(sys, "stdin", terminal)
        run(tmp_path, script, interactiveMode=mode)
    assert (tmp_path / "plugin.told").read_text().strip() == str(is_interactive).lower()


@pytest.mark.parametrize(
    ("script", "plugin", "message"),
    [
        ("echo no login >&2; exit 3", {}, "plugin ended with 3: no login"),
        ("echo no", {}, "didn't print JSON"),
        ("echo '[]'", {}, "didn't print an ExecCredential"),
        ('echo \'{"kind": "Pod"}\'', {}, "didn't print an ExecCredential"),
        (printing(token="t"), {"apiVersion": "v9"}, "apiVersion: the program printed 'client"),
        (printing(), {}, "neither a token nor a clientCertificateData"),
        (printing(token=7), {}, "token: 7 is not a string"),
        (printing(token=""), {}, "neither a token"),
        (printing(clientCertificateData="C"), {}, "clientKeyData is missing"),
        (printing(token="t", expirationTimestamp="soon"), {}, "expirationTimestamp: 'soon'"),
        ("", {"command": "no-such", "installHint": "get it"}, "can't be run: No such.*; get it"),
        ("", {"command": None}, "command is missing"),
        ("", {"apiVersion": None}, "apiVersion is missing"),
        ("", {"args": "x"}, "args: 'x' is not a list"),
        ("", {"env": [{"value": "x"}]}, r"env\[0\].name is missing"),
        ("", {"interactiveMode": "Always"}, "needs a terminal, and there is none"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, script: str, plugin: Part, message: str) -> None:
    with pytest.raises(AccessError, match=message):
        run(tmp_path, script, **plugin)


def test_a_program_that_never_ends_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_plugin, "PATIENCE_SECONDS", 0.1)
    with pytest.raises(AccessError, match="took longer than"):
        run(tmp_path, "exec sleep 600")
