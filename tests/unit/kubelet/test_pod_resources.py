import logging
import socket
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kubelet.holder import Holder
from hami_mock.kubelet.pod_resources import PodResources
from hami_mock.kubelet.wire import read_pod_resources
from tests.pod_resources import listing, message, pod_resources

words = st.text(min_size=1, max_size=8)
device_ids = st.lists(st.one_of(words, st.text(min_size=130, max_size=200)), min_size=1, max_size=4)
pods = st.dictionaries(
    st.tuples(words, words, words), st.dictionaries(words, device_ids, max_size=3), max_size=4
)


@given(pods)
def test_what_google_writes_is_read(
    pods: dict[tuple[str, str, str], dict[str, list[str]]],
) -> None:
    read = {tuple(who): devices for *who, devices in read_pod_resources(listing(pods))}
    assert read == pods


def test_all_containers_of_a_pod_and_records_of_many_devices_are_read() -> None:
    response = message("ListPodResourcesResponse")()
    # The fields in an order that proto3 allows: the name of the pod comes last.
    pod = response.pod_resources.add()
    first, second = pod.containers.add(name="a"), pod.containers.add(name="b")
    first.devices.add(resource_name="x.com/y", device_ids=["1", "2"])
    first.devices.add(resource_name="x.com/y", device_ids=["3"])
    second.devices.add(resource_name="x.com/z", device_ids=["4"])
    pod.name, pod.namespace = "p", "default"
    assert list(read_pod_resources(response.SerializeToString())) == [
        ("default", "p", "a", {"x.com/y": ["1", "2", "3"]}),
        ("default", "p", "b", {"x.com/z": ["4"]}),
    ]


def test_a_claim_is_a_device_of_each_of_its_drivers() -> None:
    response = message("ListPodResourcesResponse")()
    pod = response.pod_resources.add(name="p", namespace="default")
    container = pod.containers.add(name="main")
    container.devices.add(resource_name="x.com/y", device_ids=["1"])
    for name in ("a", "b"):
        claim = container.dynamic_resources.add(claim_name=name, claim_namespace="default")
        for driver, device in (("gpu.x.com", "0"), ("gpu.x.com", "1"), ("nic.y.com", "2")):
            claim.claim_resources.add(driver_name=driver, device_name=device, pool_name="n1")
    assert list(read_pod_resources(response.SerializeToString())) == [
        (
            "default",
            "p",
            "main",
            {
                "x.com/y": ["1"],
                "gpu.x.com": ["default/a", "default/b"],
                "nic.y.com": ["default/a", "default/b"],
            },
        )
    ]


def test_nobody_holds_anything_in_an_empty_answer() -> None:
    assert list(read_pod_resources(b"")) == []


def test_half_an_answer_is_an_error() -> None:
    whole = listing({("n", "p", "c"): {"x.com/y": ["1"]}})
    with pytest.raises(ValueError, match="truncated"):
        list(read_pod_resources(whole[:-1]))


@pytest.mark.parametrize("first", [["a"], ["a", "b"], ["x" * 300], [], [""]])
@pytest.mark.parametrize("second", [["c"], ["c", "d"], ["y" * 200], []])
@pytest.mark.parametrize("has_topology", [True, False])
def test_records_of_any_kind_follow_each_other(
    first: list[str], second: list[str], has_topology: bool
) -> None:
    response = message("ListPodResourcesResponse")()
    container = response.pod_resources.add(name="p").containers.add(name="c")
    for ids in (["0"], first, second, ["9"]):
        record = container.devices.add(resource_name="x.com/y", device_ids=ids)
        if has_topology:
            record.topology.nodes.add(ID=1)
    ((*_, devices),) = read_pod_resources(response.SerializeToString())
    assert devices == {"x.com/y": ["0", *first, *second, "9"]}


def test_a_record_that_is_cut_off_is_an_error() -> None:
    response = message("ListPodResourcesResponse")()
    container = response.pod_resources.add(name="p").containers.add(name="c")
    whole = container.devices.add(resource_name="x.com/y", device_ids=["0123"])
    record = whole.SerializeToString()
    cut = record[:-2]
    data = b"".join(b"\x12" + bytes([len(each)]) + each for each in (record, cut))
    pod = b"\x1a" + bytes([len(data)]) + data
    with pytest.raises(ValueError, match="truncated"):
        list(read_pod_resources(b"\x0a" + bytes([len(pod)]) + pod))


def test_who_holds_devices_is_asked_of_the_kubelet(socket_folder: Path) -> None:
    path = socket_folder / "pods.sock"
    with pod_resources(path) as kubelet:
        kubelet.pods = {
            ("ns", "one", "main"): {"x.com/y": ["1", "2"], "x.com/z": ["3"]},
            ("ns", "two", "main"): {},
        }
        asked = PodResources(str(path))
        assert anyio.run(asked.holders) == (
            Holder(("ns", "one", "main"), {"x.com/y": ["1", "2"], "x.com/z": ["3"]}),
        )


def test_an_answer_of_many_megabytes_is_taken(socket_folder: Path) -> None:
    """A full node: the kubelet writes a record for each of a quarter of a million units."""
    path = socket_folder / "pods.sock"
    ids = [f"{number:05x}" for number in range(100_000)]
    with pod_resources(path) as kubelet:
        kubelet.payload = listing({("ns", "big", "main"): {"nvidia.com/gpumem": ids}})
        assert len(kubelet.payload) > 3_000_000
        (holder,) = anyio.run(PodResources(str(path)).holders) or ()
        assert holder.ids == set(ids)


def listening(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    return found


def test_without_a_socket_nobody_knows_and_the_log_says_so_once(
    socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = socket_folder / "pods.sock"
    asked = PodResources(str(path))
    with caplog.at_level(logging.INFO):
        assert anyio.run(asked.holders) is None
        assert anyio.run(asked.holders) is None
    assert [record.getMessage() for record in caplog.records] == [
        f"can't ask the kubelet who holds which device: there is no {path}"
    ]


def test_a_socket_that_nobody_listens_on_is_as_none(
    socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = socket_folder / "pods.sock"
    with listening(path), caplog.at_level(logging.INFO):
        assert anyio.run(PodResources(str(path)).holders) is None
    assert str(path) in caplog.text


def test_an_empty_path_asks_nobody_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert anyio.run(PodResources("").holders) is None
    assert caplog.records == []


def test_the_log_tells_again_after_it_went_well(
    socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = socket_folder / "pods.sock"
    asked = PodResources(str(path))
    with caplog.at_level(logging.INFO):
        assert anyio.run(asked.holders) is None
        with pod_resources(path):
            assert anyio.run(asked.holders) == ()
        path.unlink(missing_ok=True)
        assert anyio.run(asked.holders) is None
    assert len(caplog.records) == 2


def test_an_answer_that_makes_no_sense_is_as_none(socket_folder: Path) -> None:
    path = socket_folder / "pods.sock"
    with pod_resources(path) as kubelet:
        kubelet.payload = b"\x0a\x7fnonsense"
        assert anyio.run(PodResources(str(path)).holders) is None
