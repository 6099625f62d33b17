import logging
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.cluster.kubernetes import Change
from hami_mock.node.pods import Pod
from hami_mock.node.state import NodeState
from hami_mock.sources import pods as module
from hami_mock.sources.pods import PodReader, read_pod
from tests.unit.builders import NODE, laid_out


def thing(name: str = "a", **annotations: str) -> dict[str, Any]:
    keys = {f"hami-mock.io/{key}": value for key, value in annotations.items()}
    metadata = {"namespace": "default", "name": name, "uid": f"u-{name}", "annotations": keys}
    return {"metadata": metadata, "spec": {}, "status": {}}


class Reader:
    """A reader that hears these changes, and what it makes of them."""

    def __init__(self) -> None:
        self.state = NodeState(laid_out(None))
        self.asked_for: list[str] = []
        self.reader = PodReader(self.state, self._watch)
        self._changes: list[Change] = []
        self.told = 0

    async def _watch(self, node_name: str, _: object) -> AsyncGenerator[Change, None]:
        self.asked_for.append(node_name)
        for change in self._changes:
            before = self.state.pod_changes.next()
            yield change
            self.told += before.is_set()

    def hear(self, *changes: Change) -> dict[tuple[str, str], Pod]:
        self._changes = [*changes]
        anyio.run(self.reader.run)
        return self.state.pods

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.state.pods]


def every(*things: dict[str, Any]) -> Change:
    return Change([*things], is_all=True)


def test_what_is_read_of_a_pod() -> None:
    gpus = {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3k", "cpu": "1", "memory": "1Gi"}
    found = read_pod(
        {
            "metadata": {
                "namespace": "default",
                "name": "a",
                "uid": "u",
                "annotations": {
                    "hami.io/vgpu-devices-allocated": ";",
                    "run.ai/simulated-gpu-utilization": "10-20",
                    "hami-mock.io/load": "ramp\n",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}",
                },
            },
            "spec": {
                "initContainers": [{"name": "i", "resources": {"limits": {"a.b/c": "1"}}}],
                "containers": [{"name": "x", "resources": {"limits": gpus}}, {"name": "y"}],
            },
            "status": {"startTime": "2026-11-16T10:00:00Z"},
        }
    )
    assert found == Pod(
        "default",
        "a",
        "u",
        {
            "hami.io/vgpu-devices-allocated": ";",
            "run.ai/simulated-gpu-utilization": "10-20",
            "hami-mock.io/load": "ramp\n",
        },
        ("i",),
        ("x", "y"),
        1794823200.0,
        {"i": {"a.b/c": 1}, "x": {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000}},
    )


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
KEYS = st.sampled_from(
    (
        *("name", "namespace", "uid", "annotations", "initContainers", "containers"),
        *("resources", "limits", "startTime", "a.b/c", "hami.io/x"),
        *("phase", "conditions", "type", "status", "restartPolicy"),
    )
)
POD_LIKE = st.recursive(
    ANYTHING,
    lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), POD_LIKE))
def test_anything_is_a_pod(document: dict[str, Any]) -> None:
    found = read_pod(document)
    assert found.name.isprintable()
    assert all(isinstance(value, str) for value in found.annotations.values())
    assert found.started >= 0


@pytest.mark.parametrize("told", ["", "soon", "0001-01-01T00:00:00Z", "1969-01-01T00:00:00Z"])
def test_no_moment_is_not_yet(told: str) -> None:
    assert read_pod({**thing(), "status": {"startTime": told}}).started == 0


def test_pods_come_change_and_go() -> None:
    reader = Reader()
    assert reader.reader.notice
    reader.hear(every(thing("a"), thing("b")))
    assert (reader.names, reader.asked_for, reader.reader.notice) == (["a", "b"], [NODE], "")
    pods = reader.hear(Change([thing("b", load="5")]), Change([thing("c")]))
    assert pods["default", "b"].annotations == {"hami-mock.io/load": "5"}
    reader.hear(Change([thing("a")], is_gone=True), Change([thing("a")], is_gone=True))
    assert sorted(reader.names) == ["b", "c"]
    reader.hear(every(thing("d")))
    assert reader.names == ["d"]
    reader.hear(every())
    assert reader.names == []


def test_only_what_matters_is_told() -> None:
    """A kubelet writes a pod's status again and again."""
    reader = Reader()
    busy = thing("a")
    reader.hear(every(busy))
    assert reader.told == 1
    ready = {"type": "Ready", "status": "True"}
    reader.hear(Change([{**busy, "status": {"conditions": [ready]}}]), every(busy))
    assert reader.told == 1
    reader.hear(Change([thing("a", load="5")]))
    assert reader.told == 2
    reader.hear(Change([{**thing("a", load="5"), "status": {"phase": "Failed"}}]))
    assert reader.told == 3


def initialized(status: str, kind: str = "Initialized") -> dict[str, Any]:
    return {"type": kind, "status": status}


@pytest.mark.parametrize(
    ("conditions", "has_begun"),
    [
        ([initialized("True", "Ready"), initialized("True")], True),
        ([initialized("False")], False),
        ([initialized("True", "Ready")], False),
        (["Initialized", None], False),
        ("Initialized", False),
    ],
)
def test_a_pod_has_begun_when_it_says_so(conditions: object, has_begun: bool) -> None:
    found = read_pod({**thing(), "status": {"conditions": conditions}})
    assert found.has_begun is has_begun


@pytest.mark.parametrize(
    ("phase", "is_over"),
    [("Pending", False), ("Running", False), ("Failed", True), ("Succeeded", True), (7, False)],
)
def test_a_pod_is_over_when_none_of_its_containers_will_run(phase: object, is_over: bool) -> None:
    assert read_pod({**thing(), "status": {"phase": phase}}).is_over is is_over


def test_init_containers_pass_on_what_they_have_unless_they_stay() -> None:
    inits = [{"name": "plain"}, {"name": "sidecar", "restartPolicy": "Always"}]
    spec = {"initContainers": inits, "containers": [{"name": "main"}]}
    found = read_pod({**thing(), "spec": spec})
    assert [*filter(found.passes_on, ("plain", "sidecar", "main"))] == ["plain"]


def test_who_has_the_pods_sees_them_change() -> None:
    reader = Reader()
    kept = reader.state.pods
    assert reader.hear(every(thing("a"))) is kept


def hear_many(reader: Reader, things: Iterable[dict[str, Any]]) -> None:
    reader.hear(*(Change([each]) for each in things))


def test_so_many_pods_are_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_MOST_PODS", 3)
    reader = Reader()
    with caplog.at_level(logging.WARNING):
        reader.hear(every(*(thing(f"p{i}") for i in range(5))))
        assert reader.names == ["p0", "p1", "p2"]
        hear_many(reader, (thing(f"q{i}") for i in range(5)))
    assert reader.names == ["p0", "p1", "p2"]
    assert caplog.text.count("only 3 pods") == 1


def test_so_much_text_of_a_pod_is_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_MOST_TEXT", 100)
    reader = Reader()
    long = thing("a", x="x" * 200, y="y")
    with caplog.at_level(logging.WARNING):
        pods = reader.hear(every(long), Change([long]), every(long))
    assert pods["default", "a"].annotations == {"hami-mock.io/y": "y"}
    assert caplog.messages == [
        "pod default/a: not all of its annotations are read: they are too long"
    ]


def test_so_many_containers_and_so_long_names() -> None:
    found = read_pod(
        {
            "metadata": {"name": "x" * 1000, "namespace": "a\nb"},
            "spec": {"containers": [{"name": f"c{i}"} for i in range(1000)]},
        }
    )
    assert (len(found.containers), len(found.name), found.namespace) == (100, 254, "a\\nb")


def test_nobody_is_asked_before_anybody_wants_to_know() -> None:
    state = NodeState(laid_out(None))
    wanted: list[bool] = []
    asked = anyio.Event()

    async def watch(*_: object) -> AsyncGenerator[Change, None]:
        asked.set()
        yield every(thing("a"))

    reader = PodReader(state, watch, lambda: bool(wanted))

    async def scenario() -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(reader.run)
            state.changes.send()
            await anyio.wait_all_tasks_blocked()
            assert not asked.is_set()
            assert reader.notice == "", "nobody misses what nobody wants"
            wanted.append(True)
            assert reader.notice == "the pods of this node have not been read yet"
            state.changes.send()
            await asked.wait()
        assert reader.notice == ""
        assert [*state.pods] == [("default", "a")]

    anyio.run(scenario)


@pytest.mark.parametrize(
    ("phase", "is_over"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True), ("", False)],
)
def test_a_pod_that_has_ended_is_over(phase: str, is_over: bool) -> None:
    assert read_pod({**thing(), "status": {"phase": phase}}).is_over is is_over
