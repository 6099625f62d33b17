import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.hami.assignment import AssignedDevice, Assignment, awaits_devices
from hami_mock.hami.errors import Malformed

WORDS = st.text("ABCxyz019-_. []", max_size=8)
INT32 = st.integers(-(2**31), 2**31 - 1)
containers = st.lists(
    st.lists(st.builds(AssignedDevice, WORDS, WORDS, INT32, INT32), max_size=3).map(tuple),
    max_size=4,
).map(tuple)

ONE = AssignedDevice("GPU-1", "NVIDIA", 3000, 30)
TWO = AssignedDevice("GPU-2", "NVIDIA", 1000, 0)


@given(containers)
def test_what_is_written_is_read_the_same(
    containers: tuple[tuple[AssignedDevice, ...], ...],
) -> None:
    assignment = Assignment(containers)
    assert Assignment.parse(assignment.encode()) == assignment


@given(containers)
def test_each_container_with_devices_gets_them_once_and_in_order(
    containers: tuple[tuple[AssignedDevice, ...], ...],
) -> None:
    left, taken = Assignment(containers), []
    while any(left.containers):
        devices, left = Assignment.parse(left.encode()).pop()
        taken.append(devices)
    assert taken == [devices for devices in containers if devices]
    assert left.pop() == ((), left)
    assert len(left.containers) == len(containers)


def test_a_container_of_the_real_scheduler() -> None:
    text = "GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,1000,0:;;GPU-2,NVIDIA,1000,0:;"
    assignment = Assignment.parse(text)
    assert assignment.containers == ((ONE, TWO), (), (TWO,))
    devices, rest = assignment.pop()
    assert devices == (ONE, TWO)
    assert rest.encode() == ";;GPU-2,NVIDIA,1000,0:;"


def test_a_pod_whose_first_container_has_no_devices_gets_its_only_segment() -> None:
    devices, rest = Assignment.parse("GPU-1,NVIDIA,3000,30:;").pop()
    assert devices == (ONE,)
    assert not any(rest.containers)
    assert rest.encode() == ";"


@pytest.mark.parametrize("text", ["", ";", ";;", ":;", "GPU-1:;"])
def test_what_has_no_comma_is_no_device(text: str) -> None:
    assert not any(Assignment.parse(text).containers)


def test_later_fields_and_a_missing_end_do_not_matter() -> None:
    assert Assignment.parse("GPU-1,NVIDIA,3000,30,new").containers == ((ONE,),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b,1,2:;c,d,3:;",
            "container 1, device 0: 'c,d,3' must be ID, type, memory and cores separated by commas",
        ),
        ("a,b,1,2:a,b,x,2:;", "container 0, device 1: memory: 'x' must be a whole number"),
        ("a,b,1,2147483648:;", "cores: '2147483648' must be a whole number from -2147483648"),
        ("a,b,1,:;", "container 0, device 0: cores: '' must be a whole number"),
    ],
)
def test_a_malformed_value_says_where(text: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        Assignment.parse(text)
    assert message in str(caught.value)


BOUND = {
    "hami.io/bind-time": "1763249111",
    "hami.io/bind-phase": "allocating",
    "hami.io/vgpu-node": "gpu-1",
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"hami.io/bind-phase": "success"}, True),
        ({"hami.io/bind-phase": "failed"}, False),
        ({"hami.io/bind-phase": None}, False),
        ({"hami.io/bind-time": None}, False),
        ({"hami.io/vgpu-node": "gpu-2"}, False),
        ({"hami.io/vgpu-node": None}, False),
    ],
)
def test_a_pod_waits_for_the_node_it_was_bound_to(
    change: dict[str, str | None], expected: bool
) -> None:
    annotations = {name: value for name, value in (BOUND | change).items() if value is not None}
    assert awaits_devices(annotations, "gpu-1") is expected
