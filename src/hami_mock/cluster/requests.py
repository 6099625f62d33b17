"""What the API server can be asked for, and what its refusals mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from hami_mock.cluster.resources import Resource
from hami_mock.errors import (
    Away,
    Busy,
    ClusterError,
    Conflict,
    Invalid,
    NotAllowed,
    NotThere,
    Outdated,
    Unauthenticated,
)
from hami_mock.kit.text import cut

REQUEST_SECONDS = 5.0
# An API server takes no object over 3 MB; what has no end must not fill the memory.
MOST_OF_AN_OBJECT = 8 * 2**20
MOST_OF_A_LIST = 64 * 2**20
_MOST_RETRY_SECONDS = 60.0
_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_MEANINGS = {
    400: Invalid,
    401: Unauthenticated,
    403: NotAllowed,
    404: NotThere,
    409: Conflict,
    410: Outdated,
    422: Invalid,
    429: Busy,
}
Body = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""An object, or a patch: a mapping is a merge patch, a list the operations of a JSON patch."""


@dataclass(frozen=True)
class Request:
    """What is asked for: a verb as Kubernetes' roles have it, and the things it is about."""

    verb: str
    resource: Resource
    name: str = ""
    namespace: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    subresource: str = ""

    @property
    def method(self) -> str:
        return _METHODS.get(self.verb, "GET")

    @property
    def path(self) -> str:
        # Quoted: the name of a pod may be what somebody wrote into an annotation.
        space = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        is_single = self.verb in ("get", "update", "patch", "delete")
        single = f"/{quote(self.name, safe='')}" if is_single and self.resource.version else ""
        sub = f"/{self.subresource}" if self.subresource else ""
        return f"{self.resource.root}{space}/{self.resource}{single}{sub}"

    @property
    def target(self) -> str:
        """The path, with what is asked of it."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def most_bytes(self) -> int:
        """How long an answer may be."""
        return MOST_OF_A_LIST if self.verb == "list" else MOST_OF_AN_OBJECT

    @property
    def ruled(self) -> str:
        """What a rule of a role calls the things."""
        return f"{self.resource}/{self.subresource}" if self.subresource else str(self.resource)

    def content_type(self, body: Body) -> str:
        if self.verb != "patch":
            return "application/json"
        # Of the patches that are mappings, in this kind alone null removes a key.
        kind = "merge" if isinstance(body, Mapping) else "json"
        return f"application/{kind}-patch+json"

    def __str__(self) -> str:
        whole_name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.verb} {self.ruled} {cut(whole_name)}".rstrip()

    def away(self, reason: str) -> Away:
        return Away(f"can't {self}: {cut(reason)}")

    def refusal(self, status: object, message: str, retry_after: str = "") -> ClusterError:
        """Return the error that a status means."""
        text = f"can't {self}: {cut(message)} ({cut(str(status))})"
        if status == 401:
            text += "; the token isn't accepted: it has expired, or is for another cluster"
        if status == 403:
            rule = self.resource.rule
            text += f"; the role needs the verb {self.verb} for {self.ruled} ({rule})"
        error = _MEANINGS.get(status, Away)(text) if isinstance(status, int) else Away(text)
        if retry_after.isascii() and retry_after.isdecimal():
            # The date that may stand here too is of a clock that isn't ours.
            error.retry_after = min(float(retry_after[:9]), _MOST_RETRY_SECONDS)
        return error
