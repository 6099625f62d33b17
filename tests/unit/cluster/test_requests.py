import pytest

from hami_mock.cluster.requests import Request
from hami_mock.cluster.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVER_VERSION,
)
from hami_mock.errors import (
    Away,
    ClusterError,
    Conflict,
    Invalid,
    NotAllowed,
    NotThere,
    Unauthenticated,
)

DRA = "/apis/resource.k8s.io/v1"


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (Request("get", NODES, "n1"), "GET /api/v1/nodes/n1"),
        (Request("list", PODS), "GET /api/v1/pods"),
        (Request("watch", NODES, "n1"), "GET /api/v1/nodes"),
        (Request("get", PODS, "../x", "a/b"), "GET /api/v1/namespaces/a%2Fb/pods/..%2Fx"),
        (Request("get", PODS, "", "a"), "GET /api/v1/namespaces/a/pods/"),
        (Request("patch", NODES, "n1", subresource="status"), "PATCH /api/v1/nodes/n1/status"),
        (Request("create", RESOURCE_SLICES), f"POST {DRA}/resourceslices"),
        (Request("delete", RESOURCE_SLICES, "s"), f"DELETE {DRA}/resourceslices/s"),
        (Request("get", DEVICE_CLASSES, "c"), f"GET {DRA}/deviceclasses/c"),
        (
            Request("update", RESOURCE_CLAIMS, "c", "a", subresource="status"),
            f"PUT {DRA}/namespaces/a/resourceclaims/c/status",
        ),
        (Request("get", SERVER_VERSION), "GET /version"),
    ],
)
def test_a_request_has_a_method_and_a_path(request_: Request, line: str) -> None:
    assert f"{request_.method} {request_.path}" == line


@pytest.mark.parametrize(
    ("verb", "body", "kind"),
    [
        ("patch", {"metadata": {}}, "application/merge-patch+json"),
        ("patch", [{"op": "test"}], "application/json-patch+json"),
        ("create", {"metadata": {}}, "application/json"),
        ("update", {"metadata": {}}, "application/json"),
    ],
)
def test_what_a_patch_is_like_says_what_kind_it_is(
    verb: str, body: dict[str, str], kind: str
) -> None:
    assert Request(verb, NODES, "n1").content_type(body) == kind


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (
            Request("patch", NODES, "n1", subresource="status"),
            "can't patch nodes/status n1: no (403); "
            'the role needs the verb patch for nodes/status (apiGroups: [""])',
        ),
        (
            Request("list", RESOURCE_SLICES),
            "can't list resourceslices: no (403); "
            'the role needs the verb list for resourceslices (apiGroups: ["resource.k8s.io"])',
        ),
        (
            Request("get", SERVER_VERSION),
            "can't get version: no (403); "
            'the role needs the verb get for version (nonResourceURLs: ["/version"])',
        ),
    ],
)
def test_a_refusal_names_the_rule_that_would_help(request_: Request, text: str) -> None:
    error = request_.refusal(403, "no")
    assert type(error) is NotAllowed
    assert str(error) == text


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (401, Unauthenticated),
        (404, NotThere),
        (409, Conflict),
        (415, Away),
        (422, Invalid),
        (500, Away),
        ("500", Away),
        (None, Away),
    ],
)
def test_a_status_has_a_meaning(status: object, kind: type[ClusterError]) -> None:
    assert type(Request("get", NODES, "n1").refusal(status, "no")) is kind
