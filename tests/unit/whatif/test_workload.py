"""Workloads are read from manifests; what is wrong is said with file, document and key."""

from pathlib import Path

import pytest

from hami_mock.errors import UsageError
from hami_mock.whatif.demand import Match, Spread, Toleration, Workload
from hami_mock.whatif.placer import place
from hami_mock.whatif.rules import Rules
from hami_mock.whatif.workload import read_one, read_workload
from tests.unit.builders import problems_of
from tests.unit.whatif.fleets import fleet

_POD = "containers: [{resources: {requests: {cpu: 100m}}}]"


def _names(text: str) -> list[str]:
    return [each.name for each in read_one("w.yaml", text).arrivals]


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Deployment", "replicas: 3, ", 3),
        ("ReplicaSet", "", 1),
        ("StatefulSet", "replicas: 0, ", 0),
        ("ReplicationController", "replicas: 2, ", 2),
        ("Job", "parallelism: 4, ", 4),
        ("Job", "parallelism: 4, completions: 2, ", 2),
    ],
)
def test_a_kind_has_so_many_pods(kind: str, spec: str, count: int) -> None:
    template = f"template: {{spec: {{{_POD}}}}}"
    text = f"kind: {kind}\nmetadata: {{name: a}}\nspec: {{{spec}{template}}}\n"
    assert _names(text) == [f"a-{number}" for number in range(count)]


def test_a_daemon_set_has_a_pod_for_each_node_that_is_called_by_both(tmp_path: Path) -> None:
    text = f"kind: DaemonSet\nmetadata: {{name: agent}}\nspec: {{template: {{spec: {{{_POD}}}}}}}\n"
    pools = fleet(tmp_path, "name: a, nodes: 2", "name: b, nodes: 1")
    outcome = place(pools, read_one("w.yaml", text), Rules())
    assert [each.pod for each in outcome.placements] == ["agent-a-0", "agent-a-1", "agent-b-0"]


def test_several_documents_and_lists_are_read() -> None:
    text = (
        f"kind: Pod\nmetadata: {{name: a}}\nspec: {{{_POD}}}\n---\n---\n"
        f"kind: List\nitems: [{{kind: Pod, metadata: {{generateName: b-}}, spec: {{{_POD}}}}}]\n"
        "---\n"
        "kind: CronJob\nmetadata: {name: c}\nspec: {jobTemplate: {spec: {parallelism: 2, template: "
        f"{{spec: {{{_POD}}}}}}}}}}}\n---\nkind: Service\nmetadata: {{name: s}}\n"
    )
    found = read_one("w.yaml", text)
    assert [each.name for each in found.arrivals] == ["a", "b-", "c-0", "c-1"]
    assert [each.owner for each in found.arrivals[2:]] == ["cronjob/c"] * 2
    assert found.notes == ("service/s has no pods that what-if can read, and is ignored",)


def test_json_is_read_too() -> None:
    assert _names('{"kind": "Pod", "metadata": {"name": "j"}, "spec": {"containers": [{}]}}') == [
        "j"
    ]


def test_all_that_decides_is_read() -> None:
    (arrival,) = read_one("w.yaml", _FULL).arrivals
    kind = arrival.kind
    assert arrival.lasts == 5400.0
    assert (kind.namespace, kind.priority, kind.node_name) == ("prod", 7, "n1")
    assert [dict(each.asks) for each in kind.containers] == [
        {"cpu": 500, "memory": 2**30},
        {"cpu": 1500, "memory": 2 * 2**30, "nvidia.com/gpu": 1},
    ]
    assert [each.is_sidecar for each in kind.containers] == [True, False]
    assert kind.terms == ((Match("a", "In", ("b", "c")), Match("metadata.name", "In", ("n1",))),)
    assert kind.tolerations == (Toleration("t", None, "NoSchedule"), Toleration("u", "v", ""))
    assert kind.spreads == (Spread("zone", 2, (Match("app", "In", ("web",)),)),)
    assert kind.overhead == {"cpu": 250}


_FULL = """
kind: Pod
metadata:
  name: a
  namespace: prod
  annotations: {hami-mock.io/duration: 1h30m}
  labels: {app: web}
spec:
  priority: 7
  nodeName: n1
  overhead: {cpu: 250m}
  initContainers:
  - {restartPolicy: Always, resources: {limits: {cpu: 0.5, memory: 1Gi}}}
  containers:
  - resources:
      limits: {cpu: 2, memory: 2Gi, nvidia.com/gpu: 1}
      requests: {cpu: 1500m}
  tolerations:
  - {key: t, operator: Exists, effect: NoSchedule}
  - {key: u, value: v}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: a, operator: In, values: [b, c]}]
          matchFields: [{key: metadata.name, operator: In, values: [n1]}]
    podAntiAffinity: {}
  topologySpreadConstraints:
  - topologyKey: zone
    maxSkew: 2
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: web}}
  - {topologyKey: host, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}
"""


def test_it_says_what_isn_t_looked_at() -> None:
    assert read_one("w.yaml", _FULL).notes == (
        "pod/a: affinity.podAntiAffinity is ignored",
        "pod/a: preferred topology spread is ignored",
    )


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        (f"schedulingGates: [{{name: quota}}], {_POD}", "schedulingGates"),
        (f"resources: {{requests: {{cpu: 4}}}}, {_POD}", "spec.resources"),
        (
            "topologySpreadConstraints: [{topologyKey: a, minDomains: 3, whenUnsatisfiable: "
            f"DoNotSchedule}}], {_POD}",
            "topologySpreadConstraints.minDomains",
        ),
        ("containers: [{resources: {requests: {hugepages-2Mi: 4Mi}}}]", "hugepages-2Mi"),
        (
            "containers: [{resources: {limits: {ephemeral-storage: 1Gi}, requests: "
            "{ephemeral-storage: 1Gi}}}]",
            "ephemeral-storage",
        ),
    ],
)
def test_what_would_change_the_answer_and_is_not_looked_at_is_told_once(
    spec: str, what: str
) -> None:
    found = read_one("w.yaml", f"kind: Pod\nmetadata: {{name: a}}\nspec: {{{spec}}}")
    assert found.notes == (f"pod/a: {what} is ignored",)


def _pod_with(resources: str) -> Workload:
    spec = f"{{containers: [{{resources: {{{resources}}}}}]}}"
    return read_one("w.yaml", f"kind: Pod\nmetadata: {{name: a}}\nspec: {spec}")


def test_what_the_nodes_of_pools_never_have_keeps_no_pod_out(tmp_path: Path) -> None:
    workload = _pod_with("requests: {cpu: 1, ephemeral-storage: 1Gi, hugepages-2Mi: 4Mi}")
    outcome = place(fleet(tmp_path, "name: a, nodes: 1"), workload, Rules())
    assert [each.pod for each in outcome.placements] == ["a"]


@pytest.mark.parametrize(("limits", "cores"), [("", 100), (", nvidia.com/gpucores: 0", 0)])
def test_no_cores_are_another_wish_than_none_said(limits: str, cores: int, tmp_path: Path) -> None:
    workload = _pod_with(f"limits: {{nvidia.com/gpu: 1{limits}}}")
    pools = fleet(tmp_path, "name: a, nodes: 1, nvidia: {cards: 1, model: T4}")
    (placed,) = place(pools, workload, Rules()).placements
    assert [share.cores for share in placed.cards] == [cores]


def test_a_pod_may_ask_for_more_than_64_bits_hold_in_all(tmp_path: Path) -> None:
    most = "{requests: {cpu: 900G, memory: 900T, nvidia.com/gpu: 900T, nvidia.com/gpumem: 900T}}"
    pods = f"template: {{spec: {{containers: [{{resources: {most}}}, {{resources: {most}}}]}}}}"
    text = f"kind: Deployment\nmetadata: {{name: a}}\nspec: {{replicas: 20000, {pods}}}"
    pools = fleet(tmp_path, "name: a, nodes: 1, nvidia: {cards: 1, model: T4}")
    outcome = place(pools, read_one("w.yaml", text), Rules())
    assert len(outcome.refusals) == 20_000
    asked = outcome.timeline[-1].asked
    assert asked.ram == 20_000 * 2 * 900 * 10**12 > 2**63
    assert asked.memory == 20_000 * 2 * (900 * 10**12) ** 2


def test_it_says_which_of_hamis_annotations_are_not_looked_at() -> None:
    def notes(policy: str, more: str = "") -> tuple[str, ...]:
        said = f"{{hami.io/gpu-scheduler-policy: '{policy}'{more}}}"
        text = f"kind: Pod\nmetadata: {{name: a, annotations: {said}}}\nspec: {{{_POD}}}"
        return read_one("w.yaml", text).notes

    assert notes("mutex") == notes("topology-aware") == ()
    assert notes("binpack,numa", ", hami.io/device-scoring-weights: 'slot=1,core=1,memory=9'") == (
        "pod/a: hami.io/gpu-scheduler-policy binpack,numa is ignored",
        "pod/a: hami.io/device-scoring-weights is ignored",
    )


_OF_WEB = "ownerReferences: [{kind: ReplicaSet, name: web-5f, controller: true}]"
_DUMPED = f"""
kind: List
items:
- kind: ReplicaSet
  metadata: {{name: web-5f, namespace: prod}}
  spec: {{template: {{spec: {{{_POD}}}}}}}
- kind: Pod
  metadata: {{name: web-5f-x, namespace: prod, {_OF_WEB}}}
  spec: {{{_POD}}}
- kind: Pod
  metadata: {{name: of-another-namespace, {_OF_WEB}}}
  spec: {{nodeName: ip-10-0-0-7, priorityClassName: high, priority: 5, {_POD}}}
  status: {{phase: Running}}
- {{kind: Pod, metadata: {{name: done-1}}, spec: {{{_POD}}}, status: {{phase: Succeeded}}}}
- {{kind: Pod, metadata: {{name: done-2}}, spec: {{{_POD}}}, status: {{phase: Failed}}}}
- kind: Pod
  metadata: {{name: proxy-x, ownerReferences: [{{kind: DaemonSet, name: proxy}}]}}
  spec: {{{_POD}}}
"""


def test_of_what_a_cluster_tells_each_pod_counts_once_and_may_go_to_any_node() -> None:
    found = read_one("dump.yaml", _DUMPED)
    assert [each.name for each in found.arrivals] == ["web-5f-0", "of-another-namespace"]
    assert (found.arrivals[1].kind.node_name, found.arrivals[1].kind.priority) == ("", 5)
    assert found.notes == (
        "pods that have ended don't count",
        "pods of daemonset/proxy don't count: give the DaemonSet itself",
    )


def test_a_mistake_that_is_read_twice_is_told_once() -> None:
    (problem,) = problems_of(
        lambda: read_one("w.yaml", f"kind: Pod\nmetadata: 7\nspec: {{{_POD}}}")
    )
    assert problem.startswith("w.yaml: document 1.metadata: 7 is not allowed")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1]", "w.yaml: document 1: [1] is not allowed: it must be a Kubernetes object"),
        ("a: b: c", "w.yaml: not valid YAML"),
        ("metadata: {}", "w.yaml: document 1.kind: is missing"),
        ("kind: Pod\nspec: {}", "w.yaml: document 1.spec.containers: is missing"),
        (
            "kind: Pod\nspec: {containers: [{resources: {limits: {cpu: lots}}}]}",
            "document 1.spec.containers[0].resources.limits.cpu: 'lots' is not allowed: it must be "
            "a quantity of CPUs such as 2 or 500m",
        ),
        (
            "kind: Pod\nspec: {containers: [{resources: {limits: {memory: 1e30}}}]}",
            "resources.limits.memory: '1e30' is not allowed: it must be a quantity such as 2 or "
            "4Gi, at most 1P",
        ),
        (
            f"---\n---\nkind: Deployment\nspec: {{replicas: many, template: {{spec: {{{_POD}}}}}}}",
            "w.yaml: document 2.spec.replicas: 'many' is not allowed",
        ),
        (
            f"kind: Pod\nmetadata: {{annotations: {{hami-mock.io/duration: soon}}}}\n"
            f"spec: {{{_POD}}}",
            "document 1.metadata.annotations.hami-mock.io/duration: 'soon' is not allowed",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_told(text: str, problem: str) -> None:
    problems = problems_of(lambda: read_one("w.yaml", text))
    assert any(problem in line for line in problems), problems


def test_a_workload_without_pods_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text("kind: Service\nmetadata: {name: a}\n")
    with pytest.raises(UsageError, match="the workload has no pods"):
        read_workload([str(file)])
    with pytest.raises(UsageError, match="can't read the workload"):
        read_workload([str(tmp_path / "none.yaml")])
