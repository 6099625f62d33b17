"""What an API server does to objects: selects, patches and checks them."""

import re
from copy import deepcopy
from typing import Any

Object = dict[str, Any]
MOST_ANNOTATION_BYTES = 2**18
"""All keys and values together, as with the real one."""


def is_selected(thing: Object, selector: str) -> bool:
    """Tell whether a field selector ("spec.driver=a,spec.nodeName!=b") takes an object."""
    return all(_fits(thing, *pair.partition("=")) for pair in selector.split(",") if pair)


def _fits(thing: Object, path: str, _: str, value: str) -> bool:
    return _value(thing, path.removesuffix("!"), value) is not path.endswith("!")


def is_labelled(thing: Object, selector: str) -> bool:
    """Tell whether a label selector ("a=b,c") takes an object."""
    labels = labels_of(thing)
    pairs = [pair.partition("=") for pair in selector.split(",") if pair]
    return all(
        key in labels and (not equals or labels[key] == value) for key, equals, value in pairs
    )


def _value(thing: Object, path: str, wanted: str) -> bool:
    found: Any = thing
    for key in path.split("."):
        found = found.get(key) or {}
    return bool((found or "") == wanted)


class RefusedError(Exception):
    """A status, and the message beside it."""


def changed(thing: Object, body: Any, content_type: str, sub: str) -> Object:
    """Return an object after an update or a patch of it, or of its subresource."""
    kind = content_type.removeprefix("application/")
    assert kind == "json" or isinstance(body, dict if kind == "merge-patch+json" else list)
    new = deepcopy(thing)
    match kind:
        case "json":
            new = body
        case "merge-patch+json":
            merge(new, body)
        case "json-patch+json":
            apply(new, body)
        case _:
            raise RefusedError(415, f"the body of the request was in an unknown format: {kind}")
    if new["metadata"].get("resourceVersion") != thing["metadata"]["resourceVersion"]:
        raise RefusedError(409, "the object has been modified")
    check(new)
    # A status is all that a request for it can change, and no other request can. Of a node, and of
    # few others, the metadata goes with it.
    kept, status = (thing, new) if sub == "status" else (new, thing)
    if sub == "status" and kind == "merge-patch+json":
        kept = {**kept, "metadata": new["metadata"]}
    new = {key: value for key, value in kept.items() if key != "status"}
    return {**new, **({"status": status["status"]} if "status" in status else {})}


def apply(thing: Object, operations: list[Object]) -> None:
    """Apply a JSON patch (of mappings: lists aren't needed)."""
    for operation in operations:
        *path, last = (
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        )
        parent = thing
        for part in path:
            parent = _child(parent, part)
        match operation["op"]:
            case "add":
                parent[last] = deepcopy(operation["value"])
            case "replace":
                _child(parent, last)
                parent[last] = deepcopy(operation["value"])
            case "remove":
                _child(parent, last)
                del parent[last]
            case "test":
                if _child(parent, last) != operation["value"]:
                    raise RefusedError(422, f"testing value {operation['path']} failed")
            case unknown:
                raise RefusedError(422, f"Unexpected kind: {unknown}")


def _child(parent: Any, key: str) -> Any:
    if not isinstance(parent, dict) or key not in parent:
        raise RefusedError(422, f"Unable to find {key!r}: missing value")
    return parent[key]


def check(thing: Object) -> None:
    """Refuse what an API server wouldn't accept of an object's metadata."""
    if _annotation_bytes(thing) > MOST_ANNOTATION_BYTES:
        text = "metadata.annotations: Too long: may not be more than 262144 bytes"
        raise RefusedError(422, text)
    if odd := [pair for pair in labels_of(thing).items() if not _is_label(*pair)]:
        raise RefusedError(422, f"metadata.labels: Invalid value: {odd}")


def merge(thing: Object, patch: Object) -> None:
    for key, value in patch.items():
        if value is None:
            thing.pop(key, None)
        elif isinstance(value, dict):
            merge(thing.setdefault(key, {}), value)
        else:
            thing[key] = value


def labels_of(thing: Object) -> dict[str, str]:
    labels: dict[str, str] = thing["metadata"].get("labels") or {}
    return labels


def _is_label(key: str, value: str) -> bool:
    domain, _, name = key.rpartition("/")
    word = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
    subdomain = r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?"
    patterns = ((word, name), (f"({word})?", value), (subdomain, domain))
    return all(re.fullmatch(pattern, text) for pattern, text in patterns)


def _annotation_bytes(thing: Object) -> int:
    annotations: dict[str, str] = thing["metadata"].get("annotations") or {}
    return sum(
        len(f"{key}{value}".encode(errors="surrogatepass")) for key, value in annotations.items()
    )
