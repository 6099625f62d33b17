"""What the API server answers, checked in one place: nobody behind it needs to doubt its shape.

A proxy may answer in the server's stead, and anything may be written by anybody who may write it.
"""

import json
from typing import Any, NamedTuple

from hami_mock.cluster.requests import Request
from hami_mock.kubelet.limits import Version, parse_version

Object = dict[str, Any]
"""A node, a pod, …: its metadata has a name, a version, and a namespace if its kind lives in one;
labels, annotations and the parts of its kind (spec, status) are mappings, if only empty ones."""


class Event(NamedTuple):
    """What a watch tells: the version to go on from, and the object that has changed, if one has.

    `is_gone`: it was deleted, or is none of those that were asked for any more.
    """

    version: str
    thing: Object | None = None
    is_gone: bool = False


class Change(NamedTuple):
    """What a watch yields: all things that there are now, or one that has changed or is gone.

    All things may come in pages: the first has `is_all`, and all but the last `has_more`.
    """

    things: list[Object]
    is_all: bool = False
    is_gone: bool = False
    has_more: bool = False


class Page(NamedTuple):
    """A part of a list: the version that all of it is of, and what to ask for the next part."""

    version: str
    things: list[Object]
    more: str = ""
    is_first: bool = True

    @property
    def change(self) -> Change:
        return Change(self.things, self.is_first, has_more=bool(self.more))


def annotations_of(thing: Object) -> dict[str, str]:
    annotations: dict[str, str] = thing["metadata"]["annotations"]
    return annotations


def labels_of(thing: Object) -> dict[str, str]:
    labels: dict[str, str] = thing["metadata"]["labels"]
    return labels


def revision(thing: Object) -> int:
    """Return an object's version as a number; the API server's are, and grow."""
    text = thing["metadata"]["resourceVersion"]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 40 else 0


def single(request: Request, text: bytes) -> Object:
    """Read the object that was asked for. Raises Away."""
    return _checked(request, _document(request, text))


def several(request: Request, text: bytes) -> list[Object]:
    """Read a list of objects. Raises Away."""
    return _items(request, _document(request, text))


def listed(request: Request, text: bytes) -> Page:
    """Read a list of objects, or a page of it. Raises Away."""
    document = _document(request, text)
    version, more = (
        _text(request, document, "resourceVersion"),
        document["metadata"].get("continue"),
    )
    return Page(version, _items(request, document), more if isinstance(more, str) else "")


def git_version(request: Request, text: bytes) -> Version:
    """Read the server's version. Raises Away."""
    try:
        return parse_version(str(_document(request, text).get("gitVersion", "")))
    except ValueError as error:
        raise request.away(str(error)) from error


def _items(request: Request, document: Object) -> list[Object]:
    items = document.get("items")
    if not isinstance(items, list | None):
        raise request.away("the answer's items are not a list")
    return [_checked(request, item) for item in items or ()]


def event(request: Request, text: bytes) -> Event:
    """Read an event of a watch.

    Raises ClusterError if the event is one, or none that can be understood.
    """
    document = _document(request, text)
    kind, thing = document.get("type"), document.get("object")
    if not isinstance(thing, dict):
        raise request.away("an event has no object")
    match kind:
        case "ADDED" | "MODIFIED" | "DELETED":
            thing = _checked(request, thing)
            return Event(thing["metadata"]["resourceVersion"], thing, is_gone=kind == "DELETED")
        case "BOOKMARK":
            return Event(_text(request, thing, "resourceVersion"))
        case "ERROR":
            raise request.refusal(thing.get("code"), str(thing.get("message", "")))
        case _:
            raise request.away(f"{kind!r} is not an event")


def _document(request: Request, text: bytes) -> Object:
    try:
        found = json.loads(text)
        if b"\\ud" in text.lower():
            # Half of a surrogate pair is a text that nobody could write down again. Go, too, puts
            # another character in its place.
            found = json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise request.away("the answer is not JSON, or is cut off") from error
    if not isinstance(found, dict):
        raise request.away("the answer is not an object")
    return found


def _checked(request: Request, thing: object) -> Object:
    if not isinstance(thing, dict):
        raise request.away("the answer is not an object")
    metadata = _mapping(request, thing, "metadata")
    resource = request.resource
    for key in ("name", "resourceVersion", *(("namespace",) if resource.is_namespaced else ())):
        _text(request, thing, key)
    if request.name not in ("", metadata["name"]):
        raise request.away(f"the answer is about {metadata['name']!r}")
    if not isinstance(metadata.setdefault("uid", ""), str):
        raise request.away("metadata.uid is not a string")
    for key in resource.parts:
        _mapping(request, thing, key)
    for kind in ("annotation", "label"):
        for key, value in _mapping(request, metadata, f"{kind}s").items():
            if not isinstance(value, str):
                raise request.away(f"the {kind} {key!r} is not a string")
    return thing


def _mapping(request: Request, thing: Object, key: str) -> Object:
    """Return a mapping in an object; what is missing or null becomes an empty one."""
    if thing.get(key) is None:
        thing[key] = {}
    found = thing[key]
    if not isinstance(found, dict):
        raise request.away(f"{key} is not a mapping")
    return found


def _text(request: Request, thing: Object, key: str) -> str:
    found = _mapping(request, thing, "metadata").get(key)
    if not (found and isinstance(found, str)):
        raise request.away(f"metadata.{key} is missing, or is not a string")
    return found
