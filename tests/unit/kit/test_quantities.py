"""Numbers are written as Kubernetes writes quantities, and read as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kit.quantities import quantity, written


@pytest.mark.parametrize(
    ("number", "is_binary", "text"),
    [
        (80 * 2**30, True, "80Gi"),
        (81559 * 2**20, True, "81559Mi"),
        (98, True, "98"),
        (0, True, "0"),
        (100, False, "100"),
        (1000, False, "1k"),
    ],
)
def test_a_quantity_is_written_as_the_server_does(number: int, is_binary: bool, text: str) -> None:
    assert written(number, is_binary=is_binary) == text


@given(st.integers(0, 2**59), st.booleans())
def test_what_is_written_is_read_again(number: int, is_binary: bool) -> None:
    assert quantity(written(number, is_binary=is_binary)) == number
