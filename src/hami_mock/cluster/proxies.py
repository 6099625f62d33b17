"""The proxy that the environment names for a server, by the rules that kubectl follows.

Python's own reader of these variables knows no networks, and a pod's NO_PROXY often has the one of
the cluster's services in it.
"""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

_Address = IPv4Address | IPv6Address
_WITH_PORT = re.compile(r"(\[.*\]|[^:]*):(\d{1,5})")


def proxy_for(url: str, environment: Mapping[str, str]) -> str:
    """Return the proxy for a URL; "" if it should be asked directly."""
    parts = urlsplit(url)
    found = _variable(environment, f"{parts.scheme}_proxy")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not found or _is_excepted(parts.hostname or "", port, environment):
        return ""
    return found if "://" in found else f"http://{found}"


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_excepted(host: str, port: int, environment: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = _variable(environment, "no_proxy").lower().replace(" ", ",").split(",")
    return any(_names(entry, host, port, address) for entry in entries if entry)


def _names(entry: str, host: str, port: int, address: _Address | None) -> bool:
    if found := _WITH_PORT.fullmatch(entry):
        entry = found[1]
        if int(found[2]) != port:
            return False
    if entry == "*":
        return True
    if address is not None:
        try:
            return address in ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            return False
    domain = entry.removeprefix("*").removeprefix(".")
    is_itself = host == domain and not entry.startswith((".", "*"))
    return is_itself or host.endswith(f".{domain}")


def _address(host: str) -> _Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
