import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.vendors.label_text import is_label, label_value, may_be_ours

VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
"""As the API server has it."""


@pytest.mark.parametrize(
    ("text", "ends", "value"),
    [
        ("NVIDIA A100-SXM4-40GB", (), "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4-40GB", ("SHARED",), "NVIDIA-A100-SXM4-40GB-SHARED"),
        ("NVIDIA H100", ("MIG", "1g.10gb"), "NVIDIA-H100-MIG-1g.10gb"),
        ("Quadro  RTX (6000)/8000®", (), "Quadro-RTX-60008000"),
        ("-_.x._-", (), "x"),
        ("x" * 80, ("SHARED",), "x" * 56 + "-SHARED"),
        ("®", ("SHARED",), "SHARED"),
        ("", (), ""),
        ("line\nbreak\ttab", (), "linebreaktab"),
    ],
)
def test_a_name_becomes_a_value_as_gfd_makes_it(
    text: str, ends: tuple[str, ...], value: str
) -> None:
    assert label_value(text, *ends) == value


@given(st.text(), st.lists(st.sampled_from(["SHARED", "MIG", "1g.5gb"]), max_size=3))
def test_whatever_the_name_the_value_is_valid(text: str, ends: list[str]) -> None:
    value = label_value(text, *ends)
    assert VALUE.fullmatch(value)
    assert len(value) <= 63


@pytest.mark.parametrize(
    ("key", "value", "is_valid"),
    [
        ("gpu", "on", True),
        ("nvidia.com/gpu.count", "8", True),
        ("nvidia.com/gpu.count", "", True),
        ("x" * 63, "x" * 63, True),
        ("x" * 64, "", False),
        ("gpu", "x" * 64, False),
        ("gpu", "a b", False),
        ("gpu", "-a", False),
        ("gpu", "a\n", False),
        ("Nvidia.com/gpu", "", False),
        ("a/b/c", "", False),
        ("/gpu", "", False),
        ("nvidia.com/", "", False),
        ("a..b/gpu", "", False),
        (f"{'a' * 254}/gpu", "", False),
        ("", "", False),
    ],
)
def test_a_label_is_what_the_api_server_takes(key: str, value: str, is_valid: bool) -> None:
    assert is_label(key, value) is is_valid


@pytest.mark.parametrize(
    "key",
    [
        "kubernetes.io/hostname",
        "node-role.kubernetes.io/control-plane",
        "topology.kubernetes.io/zone",
        "node-restriction.kubernetes.io/tenant",
        "nvidia.com/a b",
        "nvidia.com/" + "x" * 64,
        "",
    ],
)
def test_labels_that_no_set_has_are_never_ours(key: str) -> None:
    assert not may_be_ours(key)
