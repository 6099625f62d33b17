import re

import pytest

from hami_mock.views.deviceplugin.lifecycle import socket_name


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "iluvatar.ai/MR-V100.vCore", "x" * 253, "a/é ü\n..", "gpu"]
)
def test_a_socket_name_is_safe_short_and_tells_whose_it_is(resource: str) -> None:
    name = socket_name(resource)
    assert re.fullmatch(r"hami-mock-[A-Za-z0-9.-]+-[0-9a-f]{8}\.sock", name)
    assert len(name) <= 48


def test_a_socket_name_is_fresh_each_time() -> None:
    assert len({socket_name("nvidia.com/gpu") for _ in range(100)}) == 100
