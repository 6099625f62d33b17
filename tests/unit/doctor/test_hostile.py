"""Nodes and pods that nobody would write: findings or one clear line, and soon."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hami_mock.doctor import dra_found, report
from hami_mock.doctor.dra_found import KINDS
from hami_mock.doctor.examine import examine_node, examine_pod
from hami_mock.doctor.report import Examined
from tests.unit.doctor import dra_patients
from tests.unit.doctor.patients import assigned, case, node, pod, pod_case
from tests.unit.sources.annotated.nodes import SAMPLES
from tests.unit.views.dra.rig import NVIDIA, state_of

MUCH = 100_000
MANY = {f"nvidia.com/gp{i}": "1" for i in range(3000)}
STRANGE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        [
            [], {}, [None], {"": ""}, {"a": None}, [[]], 10**4000, -(10**4000), 1 << 20_000,
            "9" * 5000, "1e99", "-5", "9E", "0x" + "f" * 5000, "x" * MUCH, "1/" * MUCH,
            "1" * MUCH, "," * MUCH, "a,b," * MUCH,
            "[" * MUCH, '{"a":' * MUCH, "\x1b[2J\r\n\x00\ud800", "9999-12-31T23:59:59Z,a,b",
            "Requesting_9999-12-31 23:59:59", "0001-01-01T00:00:00Z", f"[{'9' * 5000}]",
            "GPU-1,NVIDIA,99999999999999999999,0:;", "GPU-1,10,-5,100,NVIDIA-x,0,true:",
            MANY,
            [{"resources": {"limits": {"nvidia.com/gpu": "1"}}} for _ in range(3000)],
        ]
    )
)  # fmt: skip


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value in a document."""
    if path:
        yield path
    items = document.items() if isinstance(document, dict) else ()
    for key, value in [*items, *(enumerate(document) if isinstance(document, list) else ())]:
        yield from places(value, (*path, key))


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document = deepcopy(document)
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


NODE = node(
    annotations={
        "hami.io/mutex.lock": "2026-11-15T11:59:00Z,default,p1",
        "hami.io/device-cordon": "GPU-1",
        **{register: text for register, text, _ in SAMPLES.values()},
    }
)
POD = pod(
    {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"},
    init={"nvidia.com/gpucores": "10"},
    annotations=assigned(),
    nodeName="n1",
    status={
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "message": "0/1 nodes are available: 1 2/2 CardInsufficientMemory.",
            }
        ]
    },
)
CLAIMING = dra_patients.pod(
    of_template="part",
    status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "mine"}]},
)
MADE = [
    *dra_patients.slices(state_of(cards=1, nvidia_mig=""), NVIDIA)[:2],
    dra_patients.claim(
        dra_patients.request("mig.nvidia.com", memory="1Gi", selector="device.driver == 'x'")
    ),
    dra_patients.held("gpu-0-mig-7g80gb-0-0", "other", "gpu.nvidia.com", memory="1Gi"),
    dra_patients.template(),
    dra_patients.CLASSES[0],
]
# One of thousands of places in as many as there are.
DRA = st.sampled_from([(i, path) for i, each in enumerate(MADE) for path in places(each)])
NODES = st.builds(changed, st.just(NODE), st.sampled_from(list(places(NODE))), STRANGE)
PODS = st.builds(changed, st.just(POD), st.sampled_from(list(places(POD))), STRANGE)


# YAML has a way to write a number that Python refuses to write out.
@example(changed(NODE, ("status", "capacity", "nvidia.com/gpu"), 1 << 20_000), POD)
# Once it took minutes to see that there is no word of HAMi's in it.
@example(NODE, changed(POD, ("status", "conditions", 0, "message"), "1" * MUCH))
@example(NODE, changed(POD, ("spec", "containers", 0, "resources", "limits"), MANY))
@example(
    changed(
        NODE, ("metadata", "annotations", "hami.io/device-cordon"), ",".join(map(str, range(MUCH)))
    ),
    POD,
)
@settings(max_examples=200)
@given(NODES | st.just(NODE), PODS | st.just(POD))
def test_whatever_stands_in_a_document_there_are_findings(
    ill_node: dict[str, Any], ill_pod: dict[str, Any]
) -> None:
    of_node = examine_node(case(ill_node, [ill_pod]))
    of_pod = examine_pod(pod_case(ill_pod, ill_node, [POD]))
    examined = [Examined("node", of_node), Examined("pod", of_pod)]
    lines = list(report.lines(examined))
    assert all(line.isprintable() and len(line) <= 2500 for line in lines)
    assert len(lines) < 10_000
    assert json.dumps(report.rows(examined))
    assert of_node


@settings(max_examples=200)
@given(
    DRA,
    STRANGE,
    st.builds(changed, st.just(CLAIMING), st.sampled_from([*places(CLAIMING)]), STRANGE),
)
def test_whatever_stands_in_the_objects_of_dra_there_are_findings(
    place: tuple[int, tuple[Any, ...]], value: Any, ill_pod: dict[str, Any]
) -> None:
    number, path = place
    made = [changed(each, path, value) if i == number else each for i, each in enumerate(MADE)]
    there = dra_found.read(
        {
            name: [each for each in made if KINDS.get(str(each["kind"])) == name]
            for name in KINDS.values()
        },
        {},
    )
    of_node = examine_node(dra_patients.node_case(there, ill_pod))
    own = examine_pod(dra_patients.pod_case(CLAIMING, there, elsewhere=1))
    ill = examine_pod(dra_patients.pod_case(ill_pod, there, dra_patients.node()))
    examined = [Examined("node", of_node), Examined("pod", own), Examined("ill", ill)]
    lines = list(report.lines(examined))
    assert all(line.isprintable() and len(line) <= 2500 for line in lines)
    assert json.dumps(report.rows(examined))
