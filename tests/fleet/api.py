"""What a test asks of the API server: lists, writes, and waiting until all objects are so."""

import base64
import http.client
import json
import ssl
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]
T = TypeVar("T", bound=Hashable)

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_PAGE = 500
_TIMEOUT_S = 300.0
"""To delete a thousand pods takes a server minutes that has much else to do."""
_IDLE_S = 20.0


class Refused(Exception):
    """The API server answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(f"{code}: {text[:500]}")


class Api:
    """An API server, by its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        document = json.loads(kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._address = urlsplit(cluster["server"])
        self._token = document["users"][0]["user"]["token"]
        self._connection = self._connect()
        self._used = time.monotonic()

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str, **query: object) -> Any:
        return self._ask("GET", path, query)

    def post(self, path: str, body: Object) -> Any:
        return self._ask("POST", path, {}, body)

    def merge(self, path: str, body: Object) -> Any:
        return self._ask("PATCH", path, {}, body, "application/merge-patch+json")

    def delete(self, path: str, **query: object) -> Any:
        return self._ask("DELETE", path, query)

    def all(self, path: str, selector: str = "") -> list[Object]:
        """All objects, in pages."""
        return self._list(path, selector)[1]

    def names(self, path: str, selector: str = "") -> set[str]:
        return {each["metadata"]["name"] for each in self.all(path, selector)}

    def wait(
        self,
        what: str,
        path: str,
        see: Callable[[Object], T],
        good: Callable[[Counter[T]], bool],
        *,
        selector: str = "",
        seconds: float,
    ) -> Counter[T]:
        """Follow the objects until `good` holds of how many are seen as what.

        Raises AssertionError with the last counts when it takes longer.
        """
        deadline = time.monotonic() + seconds
        version, found = self._list(path, selector)
        seen = {each["metadata"]["name"]: see(each) for each in found}
        counts = Counter(seen.values())
        for change in self._changes(path, selector, version, deadline) if not good(counts) else ():
            name = change["object"]["metadata"]["name"]
            if name in seen:
                counts -= Counter([seen.pop(name)])
            if change["type"] != "DELETED":
                seen[name] = see(change["object"])
                counts[seen[name]] += 1
            if good(counts):
                break
        assert good(counts), f"{what}: not so after {seconds:.0f} s: {dict(counts)}"
        return counts

    def _list(self, path: str, selector: str) -> tuple[str, list[Object]]:
        found: list[Object] = []
        query: Object = {"limit": _PAGE, "labelSelector": selector}
        while True:
            page = self._ask("GET", path, query)
            found += page["items"]
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return page["metadata"]["resourceVersion"], found

    def _changes(self, path: str, selector: str, version: str, deadline: float) -> Iterator[Object]:
        """Yield changes until the deadline; the server may end a watch before that."""
        while (left := deadline - time.monotonic()) > 0:
            query = {
                "watch": 1,
                "labelSelector": selector,
                "resourceVersion": version,
                "timeoutSeconds": max(1, int(left)),
            }
            with closing(self._connect(left + 5)) as connection:
                connection.request("GET", f"{path}?{urlencode(query)}", headers=self._headers)
                answer = connection.getresponse()
                while line := answer.readline():
                    change = json.loads(line)
                    assert change["type"] != "ERROR", change
                    version = change["object"]["metadata"]["resourceVersion"]
                    yield change

    def _ask(
        self,
        verb: str,
        path: str,
        query: Object,
        body: Object | None = None,
        content: str = "application/json",
    ) -> Any:
        where = f"{path}?{urlencode(query)}" if query else path
        text = None if body is None else json.dumps(body)
        headers = {**self._headers, "Content-Type": content}
        # The server closes what nobody used for a while; then another is opened.
        now = time.monotonic()
        if now - self._used > _IDLE_S:
            self._connection.close()
        self._used = now
        self._connection.request(verb, where, text, headers)
        answer = self._connection.getresponse()
        told = answer.read()
        if answer.status >= 300:
            raise Refused(answer.status, told.decode(errors="replace"))
        return json.loads(told)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _connect(self, seconds: float = _TIMEOUT_S) -> http.client.HTTPSConnection:
        host, port = self._address.hostname, self._address.port
        assert host is not None
        return http.client.HTTPSConnection(host, port, context=self._context, timeout=seconds)


def readiness(node: Object) -> str:
    """What a node's Ready condition says."""
    conditions = node.get("status", {}).get("conditions", ())
    return next((each["status"] for each in conditions if each["type"] == "Ready"), "")


def phase(pod: Object) -> str:
    return str(pod.get("status", {}).get("phase", ""))
