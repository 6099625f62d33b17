"""Workloads from files: manifests of Kubernetes in YAML or JSON, and traces as CSV.

Read are Pod, Deployment, ReplicaSet, StatefulSet, ReplicationController, Job, CronJob (one run of
it), DaemonSet and List; of other kinds it is said that they don't count. All arrive at once, in the
order in which they stand. Where objects come from a running cluster, who is owned by another of the
file counts with that, pods that have ended don't count, and the others may go to any node.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from hami_mock.errors import UsageError
from hami_mock.kit import strict_yaml
from hami_mock.kit.files import read_text
from hami_mock.kit.text import cut
from hami_mock.kit.values import Fields, Kind, Mistakes, checked, whole
from hami_mock.whatif import trace
from hami_mock.whatif.demand import Arrival, Workload
from hami_mock.whatif.pod_reader import read_pod, unmodelled

MOST_BYTES = 2**26
MOST_PODS = 1_000_000
_NAME: Kind[str] = checked(lambda value: isinstance(value, str) and bool(value), "a name", {})
_COUNT = whole(0, MOST_PODS)
_ENDED = ("Succeeded", "Failed")


class _Shape(NamedTuple):
    """Where a kind of object has its pods: the path to their template, and how many there are."""

    path: tuple[str, ...]
    count: Callable[[Fields], int]


def _replicas(spec: Fields) -> int:
    return spec.get("replicas", _COUNT, 1)


def _one(_spec: Fields) -> int:
    return 1


def _parallel(spec: Fields) -> int:
    """A Job has so many pods at once; those that come after others end are not reckoned with."""
    most = spec.get("parallelism", _COUNT, 1)
    return min(most, spec.get("completions", _COUNT, most))


def _of_cron_job(spec: Fields) -> int:
    return _parallel(spec.section("jobTemplate").section("spec"))


_TEMPLATE = ("spec", "template")
SHAPES: Mapping[str, _Shape] = {
    "Pod": _Shape((), _one),
    "Deployment": _Shape(_TEMPLATE, _replicas),
    "ReplicaSet": _Shape(_TEMPLATE, _replicas),
    "StatefulSet": _Shape(_TEMPLATE, _replicas),
    "ReplicationController": _Shape(_TEMPLATE, _replicas),
    "DaemonSet": _Shape(_TEMPLATE, _one),
    "Job": _Shape(_TEMPLATE, _parallel),
    "CronJob": _Shape(("spec", "jobTemplate", *_TEMPLATE), _of_cron_job),
}


def read_workload(paths: Iterable[str]) -> Workload:
    """Return the pods of some files. Raises UsageError with all that is wrong with them."""
    parts: list[Workload] = []
    problems: list[str] = []
    for path in paths:
        try:
            text = read_text("can't read the workload", path, MOST_BYTES)
            parts.append(read_one(path, text))
        except UsageError as error:
            problems += error.problems
    found = _joined(parts)
    if not problems and not found.arrivals:
        problems.append("the workload has no pods: name a file with a Pod, a Deployment or a Job")
    if problems:
        raise UsageError(problems)
    return found


def read_one(path: str, text: str) -> Workload:
    """Return the pods of a file's text: a trace if it is called .csv. Raises UsageError."""
    if trace.is_table(path):
        return trace.read_trace(path, text)
    try:
        documents = strict_yaml.load_all(text, MOST_BYTES)
    except ValueError as error:
        raise UsageError(f"{path}: not valid YAML: {error}") from error
    mistakes = Mistakes(path)
    places = ((f"document {n}", each) for n, each in enumerate(documents, 1) if each is not None)
    objects = [each for place, one in places for each in _flat(one, place, mistakes)]
    every = [Fields(each, at, mistakes, is_null_absent=True) for at, each in objects]
    there = {_called(each, each.section("metadata")) for each in every}
    parts = [_pods(each) for each in every if there.isdisjoint(_owners(each))]
    if mistakes.lines:
        raise UsageError([*dict.fromkeys(mistakes.lines)])
    return _joined(parts)


def _joined(parts: Iterable[Workload]) -> Workload:
    every = tuple(parts)
    return Workload(
        tuple(arrival for each in every for arrival in each.arrivals),
        tuple(dict.fromkeys(note for each in every for note in each.notes)),
    )


def _flat(
    document: object, place: str, mistakes: Mistakes
) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    if not isinstance(document, dict):
        mistakes.refuse(place, document, "a Kubernetes object (a mapping)")
        return
    kind = document.get("kind")
    if isinstance(kind, str) and kind.endswith("List"):
        rows = Fields(document, place, mistakes, is_null_absent=True).sections("items")
        yield from ((row.place, row.values) for row in rows)
    else:
        yield place, document


def _pods(fields: Fields) -> Workload:
    kind = fields.need("kind", _NAME, "")
    metadata = fields.section("metadata")
    name = metadata.get("name", _NAME, "") or metadata.get("generateName", _NAME, "")
    owner = f"{kind.lower()}/{name}"
    if said := _uncounted(fields, kind, owner):
        return Workload((), (said,) if kind else ())
    shape = SHAPES[kind]
    template = fields
    for key in shape.path:
        template = template.section(key)
    own = template.section("metadata")
    if "namespace" in metadata:
        own = replace(own, values={**own.values, "namespace": metadata.values["namespace"]})
    spec = template.section("spec")
    pod, lasts = read_pod(own, spec)
    if kind == "DaemonSet":
        pod = replace(pod, on_each_node=True)
    if _phase(fields):
        pod = replace(pod, node_name="")  # a scheduler has chosen that one
    count = shape.count(fields.section("spec"))
    is_one = shape.path == () or pod.on_each_node
    names = [name] if is_one else (f"{name}-{number}" for number in range(count))
    notes = tuple(f"{cut(owner)}: {each} is ignored" for each in unmodelled(own, spec))
    return Workload(tuple(Arrival(each, owner, pod, 0.0, lasts) for each in names), notes)


def _uncounted(fields: Fields, kind: str, owner: str) -> str:
    """Return why an object doesn't count; nothing if it does."""
    if kind not in SHAPES:
        return f"{cut(owner)} has no pods that what-if can read, and is ignored"
    if _phase(fields) in _ENDED:
        return "pods that have ended don't count"
    for by, _, name in _owners(fields):
        if by == "DaemonSet":
            return f"pods of daemonset/{cut(name)} don't count: give the DaemonSet itself"
    return ""


def _phase(fields: Fields) -> str:
    """Return how far a pod is that a cluster tells of."""
    return fields.section("status").get("phase", _NAME, "")


def _owners(fields: Fields) -> list[tuple[str, str, str]]:
    """Return the objects that made this one."""
    metadata = fields.section("metadata")
    found = (_called(row, row) for row in metadata.sections("ownerReferences"))
    namespace = metadata.get("namespace", _NAME, "")
    return [(kind, namespace, name) for kind, _, name in found]


def _called(fields: Fields, metadata: Fields) -> tuple[str, str, str]:
    """Return an object's kind, namespace and name."""
    namespace = metadata.get("namespace", _NAME, "")
    return fields.get("kind", _NAME, ""), namespace, metadata.get("name", _NAME, "")
