from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hami_mock.doctor.examine import examine_node, examine_pod
from hami_mock.doctor.finding import Severity, has_errors
from tests.unit.doctor.patients import assigned, case, node, pod, pod_case, told
from tests.unit.sources.annotated.nodes import SAMPLES

GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


def test_a_node_that_is_well() -> None:
    (only,) = examine_node(case(node(), []))
    assert only.severity is Severity.OK
    assert (only.where, only.what) == (
        "NVIDIA",
        "2 cards with 65536 MiB, 20 nvidia.com/gpu allocatable",
    )


def test_a_pod_that_is_well() -> None:
    assert examine_pod(pod_case(pod(), node())) == []
    done = pod(annotations=assigned(bind_phase="success"), nodeName="n1")
    done["status"]["phase"] = "Running"
    assert examine_pod(pod_case(done, node())) == []


def test_a_node_without_anything_of_hami() -> None:
    bare = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "8"}}}
    findings = examine_node(case(bare))
    assert told(findings) == [("warning", "node n1")]
    assert not has_errors(findings)


def test_a_pod_that_asks_for_nothing_of_hami() -> None:
    assert told(examine_pod(pod_case(pod({"cpu": "1"})))) == [("warning", "pod default/p1")]


def test_all_that_is_wrong_is_found_at_once() -> None:
    ill = node(
        annotations={"hami.io/node-nvidia-register": "{", "hami.io/mutex.lock": "?"},
        resources={"nvidia.com/gpucores": "0", "nvidia.com/gpux": "1"},
    )
    assert told(examine_node(case(ill))) == [
        ("error", "hami.io/mutex.lock"),
        ("error", "hami.io/node-nvidia-register"),
        ("error", "nvidia.com/gpucores"),
        ("warning", "nvidia.com/gpux"),
    ]


@given(
    st.dictionaries(
        st.sampled_from([register for register, _, _ in SAMPLES.values()])
        | st.sampled_from(
            ["hami.io/mutex.lock", "hami.io/node-handshake", "hami.io/device-cordon"]
        ),
        st.text(max_size=20) | st.sampled_from([text for _, text, _ in SAMPLES.values()]),
    ),
    GARBAGE,
)
def test_no_garbage_is_too_much(annotations: dict[str, str], garbage: Any) -> None:
    ill = node(annotations=annotations)
    assert examine_node(case(ill))
    ill["status"] = garbage
    assert examine_node(case(ill, [pod(annotations=annotations)]))
    strange = pod(annotations={**assigned(), "hami.io/bind-time": str(garbage)})
    strange["spec"] = garbage
    assert examine_pod(pod_case(strange, ill))
