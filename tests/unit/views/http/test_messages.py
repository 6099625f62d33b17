from http import HTTPStatus

import pytest

from hami_mock.views.http.messages import Answer, Named, Routes, respond

ROUTES: Routes = {
    "/": lambda: Answer(b"root"),
    "/nodes": lambda: Answer(b"all"),
    "/nodes/": Named(lambda name: Answer(f"<{name}>".encode())),
}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", b"root"),
        ("/nodes", b"all"),
        ("/nodes/a100-17", b"<a100-17>"),
        ("/nodes/a100-17?x=/y", b"<a100-17>"),
        ("/nodes/%2e%2e", b"<%2e%2e>"),
    ],
)
def test_a_name_may_stand_behind_a_path(path: str, body: bytes) -> None:
    head, _, found = respond(f"GET {path} HTTP/1.1\r\n\r\n".encode(), ROUTES).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert found == body


@pytest.mark.parametrize("path", ["/nodes/", "/nodes/a/b", "/other", "/other/a", "nodes/a", ""])
def test_what_is_no_name_is_not_found(path: str) -> None:
    answer = respond(f"GET {path} HTTP/1.1\r\n\r\n".encode(), ROUTES)
    assert answer.startswith(f"HTTP/1.1 {HTTPStatus.NOT_FOUND.value} ".encode())
    assert b"try / /nodes /nodes/" in answer
