import time
from pathlib import Path

import anyio
import pytest

from hami_mock.cluster import service_account
from hami_mock.cluster.access import Access, AccessError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(service_account, "FOLDER", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("t1\n")
    (tmp_path / "ca.crt").write_text("CERTIFICATES")
    return tmp_path


def load() -> Access:
    return anyio.run(service_account.load)


def test_a_pod_finds_the_server_its_token_and_its_authority(folder: Path) -> None:
    access = load()
    assert access.endpoint.url == "https://10.0.0.1:443"
    assert access.endpoint.authority == b"CERTIFICATES"
    assert access.headers == (("Authorization", "Bearer t1"),)
    assert 0 < access.expires - time.time() <= 60
    assert "t1" not in repr(access)


def test_a_new_token_is_found(folder: Path) -> None:
    before = load()
    (folder / "token").write_text("t2")
    assert load().headers == (("Authorization", "Bearer t2"),)
    assert load().endpoint == before.endpoint


def test_an_ipv6_address_gets_brackets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert load().endpoint.url == "https://[fd00::1]:443"


def test_the_environments_proxy_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert load().endpoint.proxy == "http://proxy:3128"
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/16")
    assert load().endpoint.proxy == ""
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy")
    with pytest.raises(AccessError, match="the proxy of the environment: 'socks5://proxy' is not"):
        load()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("token", None, "token can't be read: No such file or directory; does the pod mount"),
        ("token", "", "token is empty"),
        ("token", " \n", "the token is empty"),
        ("token", "t\nx", "the token contains characters that no token can have"),
        ("token", "tö", "the token contains characters that no token can have"),
        ("ca.crt", None, r"ca\.crt can't be read"),
        ("ca.crt", "", r"ca\.crt is empty"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(
    folder: Path, name: str, content: str | None, message: str
) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(AccessError, match=message):
        load()


@pytest.mark.parametrize(("host", "port"), [("", "443"), ("h", ""), ("h", "x"), ("h", "0")])
def test_an_odd_address_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, host: str, port: str
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    with pytest.raises(AccessError, match="KUBERNETES_SERVICE_HOST"):
        load()
