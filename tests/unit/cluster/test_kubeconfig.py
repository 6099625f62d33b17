import json
import math
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import anyio
import pytest

from hami_mock.cluster import kubeconfig
from hami_mock.cluster.access import AccessError
from hami_mock.cluster.kubeconfig import Kubeconfig
from tests.unit.cluster.kubeconfigs import Part, document, load


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def test_what_the_cluster_says_is_taken(tmp_path: Path) -> None:
    said = {
        "server": "https://api:6443/k8s/",
        "certificate-authority-data": encoded("CA"),
        "insecure-skip-tls-verify": True,
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:3128",
    }
    access = load(tmp_path, said)
    endpoint = access.endpoint
    assert (endpoint.url, endpoint.authority) == ("https://api:6443/k8s", b"CA")
    assert (endpoint.is_verified, endpoint.server_name) == (False, "kubernetes")
    assert endpoint.proxy == "http://proxy:3128"
    assert (access.headers, access.expires) == ((), math.inf)
    plain = load(tmp_path).endpoint
    assert (plain.is_verified, plain.server_name, plain.authority, plain.proxy) == (
        True,
        "",
        b"",
        "",
    )


def test_files_are_relative_to_the_kubeconfig_and_data_counts_more(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"{name} of a file")
    cluster = {"certificate-authority": "ca"}
    user = {"client-certificate": "cert", "client-key": str(tmp_path / "key")}
    endpoint = load(tmp_path, cluster, user).endpoint
    assert endpoint.authority == b"ca of a file"
    assert (endpoint.certificate, endpoint.key) == (b"cert of a file", b"key of a file")
    cluster["certificate-authority-data"] = encoded("data")
    assert load(tmp_path, cluster, user).endpoint.authority == b"data"


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "t"}, "Bearer t"),
        ({"username": "ü", "password": "p:w"}, f"Basic {encoded('ü:p:w')}"),
        ({"token": "t", "username": "u"}, "Bearer t"),
        ({"auth-provider": {"name": "oidc", "config": {"id-token": "i.d.t"}}}, "Bearer i.d.t"),
    ],
)
def test_the_user_is_known_by_a_header(tmp_path: Path, user: Part, header: str) -> None:
    assert load(tmp_path, user=user).headers == (("Authorization", header),)


def test_a_file_with_the_token_counts_more_and_is_soon_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of the file\n".replace(" ", "-"))
    access = load(tmp_path, user={"token": "t", "tokenFile": "token"})
    assert access.headers == (("Authorization", "Bearer of-the-file"),)
    assert 0 < access.expires - time.time() <= 60


def test_somebody_else_is_impersonated(tmp_path: Path) -> None:
    extra = {"Scopes/x": ["a", "b"], "ü": ["c"]}
    user = {"as": "jane", "as-uid": "7", "as-groups": ["g", "h"], "as-user-extra": extra}
    assert load(tmp_path, user=user).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Extra-Scopes%2Fx", "a"),
        ("Impersonate-Extra-Scopes%2Fx", "b"),
        ("Impersonate-Extra-%C3%BC", "c"),
    )


def test_the_first_of_several_files_counts_and_missing_ones_do_not(tmp_path: Path) -> None:
    first, second = tmp_path / "1" / "config", tmp_path / "config"
    first.parent.mkdir()
    (first.parent / "ca").write_text("first")
    theirs = document({"server": "https://second"}, {"token": "second"})
    ours = {"clusters": document({"certificate-authority": "ca"})["clusters"]}
    first.write_text(json.dumps(ours))
    second.write_text(json.dumps(theirs))
    access = anyio.run(Kubeconfig([tmp_path / "no", first, second]).load)
    assert (access.endpoint.url, access.endpoint.authority) == ("https://api:6443", b"first")
    assert access.headers == (("Authorization", "Bearer second"),)


def test_yaml_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: k}}]\n"
        "clusters:\n- name: k\n  cluster:\n    server: http://api\n"
    )
    assert anyio.run(Kubeconfig([path]).load).endpoint.url == "http://api"


def test_the_context_stays_the_one_that_was_current(tmp_path: Path) -> None:
    path = tmp_path / "config"
    said = document()
    said["contexts"].append({"name": "d", "context": {"cluster": "l"}})
    said["clusters"].append({"name": "l", "cluster": {"server": "https://other"}})
    path.write_text(json.dumps(said))
    config = Kubeconfig([path])
    before = anyio.run(config.load)
    path.write_text(json.dumps({**said, "current-context": "d"}))
    assert anyio.run(config.load) == before
    assert anyio.run(Kubeconfig([path]).load).endpoint.url == "https://other"


def test_the_files_are_those_of_the_variable_or_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in (None, ""):
        monkeypatch.delenv("KUBECONFIG", raising=False)
        if value is not None:
            monkeypatch.setenv("KUBECONFIG", value)
        assert kubeconfig.paths() == []
    own = tmp_path / ".kube" / "config"
    own.parent.mkdir()
    own.write_text("")
    assert kubeconfig.paths() == [own]
    monkeypatch.setenv("KUBECONFIG", "/a:/b:")
    assert kubeconfig.paths() == [Path("/a"), Path("/b")]


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({"server": None}, {}, "server is missing"),
        ({"server": 7}, {}, "server: 7 is not a string"),
        ({"server": "api"}, {}, "server: 'api' is not an http or https URL"),
        ({"server": "ftp://api"}, {}, "is not an http or https URL"),
        ({"server": "https://api:x"}, {}, "is not an http or https URL"),
        ({"server": "https://ä"}, {}, "is not an http or https URL"),
        ({"server": "https://a b"}, {}, "is not an http or https URL"),
        ({"proxy-url": "socks5://x"}, {}, "proxy-url: 'socks5://x' is not"),
        ({"certificate-authority-data": "ä"}, {}, "certificate-authority-data is not base64"),
        ({"certificate-authority": "no"}, {}, "/no can't be read: No such file"),
        ({"insecure-skip-tls-verify": "no"}, {}, "'no' is neither true nor false"),
        ({}, {"token": ["t"]}, r"token: \['t'\] is not a string"),
        ({}, {"token": "\ud800"}, "token: .* is not a string"),
        ({}, {"token": "a b"}, "the token contains characters that no token can have"),
        ({}, {"tokenFile": "no"}, "tokenFile: .*/no can't be read"),
        (
            {},
            {"auth-provider": {"name": "gcp"}},
            "no token for the provider 'gcp'.*run kubectl once",
        ),
        ({}, {"auth-provider": {"name": "oidc"}}, "no token for the provider 'oidc'"),
        ({}, {"as-groups": "g"}, "as-groups: 'g' is not a list"),
        ({}, {"as-groups": [1]}, "as-groups: not all are strings"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, cluster: Part, user: Part, message: str
) -> None:
    with pytest.raises(AccessError, match=message) as caught:
        load(tmp_path, cluster, user)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": ""}, "current-context is missing"),
        ({"current-context": "x"}, "there is no context 'x'"),
        ({"contexts": []}, "there is no context 'c'"),
        ({"contexts": [{"name": "c"}]}, r"contexts\[0\].context.cluster is missing"),
        ({"clusters": None}, "there is no cluster 'k'"),
        ({"clusters": {"k": {}}}, "clusters: {'k': {}} is not a list"),
        ({"clusters": ["k"]}, r"clusters\[0\]: 'k' is not a mapping"),
        ({"users": []}, "there is no user 'u'"),
        ({"users": [{"name": "u", "user": 7}]}, r"users\[0\].user: 7 is not a mapping"),
    ],
)
def test_what_does_not_fit_together_is_told(tmp_path: Path, change: Part, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps({**document(), **change}))
    with pytest.raises(AccessError, match=message):
        anyio.run(Kubeconfig([path]).load)


@pytest.mark.parametrize("text", ["", "[]", "{", "a: [", "\udcff"])
def test_a_file_that_is_no_kubeconfig_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(AccessError, match="config is not a kubeconfig"):
        anyio.run(Kubeconfig([path]).load)


def test_no_file_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"there is no .*/a:.*/b"):
        anyio.run(Kubeconfig([tmp_path / "a", tmp_path / "b"]).load)
    with pytest.raises(AccessError, match="can't be read: Is a directory"):
        anyio.run(Kubeconfig([tmp_path]).load)


def test_secrets_are_in_no_text(tmp_path: Path) -> None:
    user: dict[str, Any] = {
        "token": "SECRET",
        "client-certificate-data": encoded("SECRET"),
        "client-key-data": encoded("SECRET"),
    }
    assert "SECRET" not in repr(load(tmp_path, {"proxy-url": "http://u:SECRET@p"}, user))
