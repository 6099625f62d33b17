import pytest

from hami_mock.cluster.proxies import proxy_for

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://api:6443", {}, ""),
        ("https://api:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api:6443", {"https_proxy": PROXY}, PROXY),
        ("https://api:6443", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://api:6443", {"HTTP_PROXY": PROXY}, ""),
        ("http://api:8080", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
    ],
)
def test_the_proxy_is_the_one_for_the_scheme(
    url: str, environment: dict[str, str], proxy: str
) -> None:
    assert proxy_for(url, environment) == proxy


@pytest.mark.parametrize(
    ("host", "excepted", "is_direct"),
    [
        ("10.96.0.1", "10.96.0.0/12", True),
        ("10.200.0.1", "10.96.0.0/12", False),
        ("10.96.0.1", "x, 10.96.0.1", True),
        ("10.96.0.1", "10.96.0.1:443", True),
        ("10.96.0.1", "10.96.0.1:6443", False),
        ("[fd00::1]", "fd00::/8", True),
        ("[fd00::1]", "[fd00::1]:443", True),
        ("[fd00::1]", "10.0.0.0/8", False),
        ("api.corp.example", "corp.example", True),
        ("api.corp.example", ".corp.example", True),
        ("api.corp.example", "*.corp.example", True),
        ("corp.example", "corp.example", True),
        ("corp.example", ".corp.example", False),
        ("notcorp.example", "corp.example", False),
        ("api", "API", True),
        ("api", "*", True),
        ("api", ",,", False),
        ("api", "10.0.0.0/8,not/a/network", False),
    ],
)
def test_what_is_excepted_is_asked_directly(host: str, excepted: str, is_direct: bool) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": excepted}
    assert proxy_for(f"https://{host}:443", environment) == ("" if is_direct else PROXY)
