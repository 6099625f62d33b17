import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kit.quantities import quantity
from hami_mock.sources.annotated.node_object import NodeObject

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "status", "name", "annotations", "capacity", "x"]),
            inner,
            max_size=4,
        )
    ),
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("20", 20),
        (20, 20),
        ("0", 0),
        ("-3", -3),
        ("1k", 1000),
        ("2M", 2_000_000),
        ("4Ki", 4096),
        ("1.5Gi", 3 * 2**29),
        ("100m", 1),
        ("2e3", 2000),
        ("131072", 131072),
    ],
)
def test_a_quantity_is_a_whole_number_rounded_up(text: object, number: int) -> None:
    assert quantity(text) == number


@pytest.mark.parametrize(
    "value", ["", "x", "1 k", "1e999", "9" * 40, None, True, 1.5, [], "\uff11"]
)
def test_what_is_no_quantity_is_none(value: object) -> None:
    assert quantity(value) is None


def test_a_node_is_read() -> None:
    document = {
        "metadata": {"name": "n", "annotations": {"a": "b", "c": 1}},
        "status": {"capacity": {"x/y": "10", "bad": "?"}, "allocatable": {"x/y": "8"}},
    }
    assert NodeObject.read(document) == NodeObject("n", {"a": "b"}, {"x/y": 10}, {"x/y": 8})


@given(ANYTHING)
def test_whatever_it_is_it_can_be_read(document: object) -> None:
    assert isinstance(NodeObject.read(document), NodeObject)
