from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hami_mock.views.page.merge_patch import difference

LEAVES = st.none() | st.booleans() | st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2)
KEYS = st.sampled_from("abc")
DOCUMENTS = st.dictionaries(
    KEYS, st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)
)


def patched(before: Any, patch: Any) -> Any:
    """RFC 7396, as its text has it."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(before) if isinstance(before, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), value)
    return result


def without_none(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return data
    return {key: without_none(value) for key, value in data.items() if value is not None}


@given(DOCUMENTS, DOCUMENTS)
def test_a_patch_makes_one_document_of_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    result = patched(before, difference(before, after))
    assert without_none(result) == without_none(after)


@given(DOCUMENTS)
def test_nothing_new_is_an_empty_patch(document: dict[str, Any]) -> None:
    assert difference(document, document) == {}


def test_only_what_changed_is_in_the_patch() -> None:
    before = {"cards": {"a": {"busy": 1, "power": 50}, "b": {"busy": 2}}, "node": "n"}
    after = {"cards": {"a": {"busy": 3, "power": 50}}, "node": "n"}
    assert difference(before, after) == {"cards": {"a": {"busy": 3}, "b": None}}
