"""The template of a pod, as in a manifest → what a scheduler looks at. Pure."""

from collections.abc import Iterator
from functools import partial

from hami_mock.fleet.names import DURATION
from hami_mock.kit import durations
from hami_mock.kit.quantities import quantity
from hami_mock.kit.text import cut
from hami_mock.kit.values import Fields, Kind, checked, choice, whole
from hami_mock.whatif.demand import (
    CPU,
    FIELD,
    RAM,
    Container,
    Match,
    PodKind,
    Spread,
    Term,
    Toleration,
)
from hami_mock.whatif.requests import CARD_POLICY
from hami_mock.whatif.rules import CardPolicy

_TEXT: Kind[str] = checked(lambda value: isinstance(value, str), "a text", {})
_OPERATORS = choice("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS = choice("NoSchedule", "PreferNoSchedule", "NoExecute")
_DURATION = Kind(durations.parse, durations.FORM)
_WHOLE = whole(-(2**31), 2**31 - 1)
_CARD_WEIGHTS = "hami.io/device-scoring-weights"
_MOST = 10**15
"""More of a resource than anybody asks for; what a pod asks for in all still fits in 64 bits."""
_UNMODELLED = ("podAffinity", "podAntiAffinity")
_OF_SPREAD = ("minDomains", "matchLabelKeys", "nodeAffinityPolicy", "nodeTaintsPolicy")


def read_pod(metadata: Fields, spec: Fields) -> tuple[PodKind, float | None]:
    """Return a pod and how long it lasts, as its annotation says; mistakes go to the fields'."""
    annotations = texts(metadata, "annotations")
    noted = Fields(annotations, metadata.at("annotations"), metadata.mistakes)
    affinity = spec.section("affinity").section("nodeAffinity")
    required = affinity.section("requiredDuringSchedulingIgnoredDuringExecution")
    containers = [
        _container(row, is_init=key == "initContainers")
        for key in ("initContainers", "containers")
        for row in spec.sections(key)
    ]
    if not any(not each.is_init for each in containers):
        spec.say("containers", "is missing: a pod has at least one container")
    kind = PodKind(
        containers=tuple(containers),
        namespace=metadata.get("namespace", _TEXT, "default"),
        annotations=annotations,
        labels=texts(metadata, "labels"),
        selector=texts(spec, "nodeSelector"),
        terms=tuple(_term(row) for row in required.sections("nodeSelectorTerms")),
        tolerations=tuple(_toleration(row) for row in spec.sections("tolerations")),
        spreads=tuple(_spreads(spec)),
        overhead=_amounts(spec, "overhead"),
        priority=spec.get("priority", _WHOLE, 0),
        node_name=spec.get("nodeName", _TEXT, ""),
    )
    return kind, noted.get(DURATION, _DURATION, None)


def unmodelled(metadata: Fields, spec: Fields) -> Iterator[str]:
    """Yield what a pod says that isn't looked at."""
    annotations = texts(metadata, "annotations")
    if annotations.get(CARD_POLICY, CardPolicy.BINPACK) not in [*CardPolicy]:
        yield f"{CARD_POLICY} {cut(annotations[CARD_POLICY])}"
    if _CARD_WEIGHTS in annotations:
        yield _CARD_WEIGHTS
    affinity = spec.section("affinity")
    yield from (f"affinity.{key}" for key in _UNMODELLED if key in affinity)
    node = affinity.section("nodeAffinity")
    if "preferredDuringSchedulingIgnoredDuringExecution" in node:
        yield "preferred node affinity"
    if "priorityClassName" in spec and "priority" not in spec:
        yield "priorityClassName"
    yield from (key for key in ("resourceClaims", "schedulingGates") if spec.values.get(key))
    if "resources" in spec:
        yield "spec.resources"
    yield from _unmodelled_resources(spec)
    for row in spec.sections("topologySpreadConstraints"):
        if row.get("whenUnsatisfiable", _TEXT, "") == "DoNotSchedule":
            yield from (f"topologySpreadConstraints.{key}" for key in _OF_SPREAD if key in row)
        else:
            yield "preferred topology spread"
    if any("hostPort" in port for port in _ports(spec)):
        yield "hostPort"


def _unmodelled_resources(spec: Fields) -> Iterator[str]:
    """Yield what is asked for of nodes that pools say nothing of, such as ephemeral-storage."""
    for key in ("initContainers", "containers"):
        for container in spec.sections(key):
            resources = container.section("resources")
            for part in ("limits", "requests"):
                names = map(str, resources.section(part).values)
                yield from (cut(name) for name in names if not _is_counted(name))


def _is_counted(name: str) -> bool:
    return name in (CPU, RAM) or "/" in name


def texts(fields: Fields, key: str) -> dict[str, str]:
    section = fields.section(key)
    return {str(name): section.get(name, _TEXT, "") for name in section.values}


def _ports(spec: Fields) -> Iterator[Fields]:
    for container in spec.sections("containers"):
        yield from container.sections("ports")


def _container(fields: Fields, *, is_init: bool) -> Container:
    resources = fields.section("resources")
    # Who sets a limit alone requests as much.
    asks = {**_amounts(resources, "limits"), **_amounts(resources, "requests")}
    is_sidecar = is_init and fields.get("restartPolicy", _TEXT, "") == "Always"
    # Nothing of HAMi's cores is another wish than not to say how many.
    return Container(asks, is_init, is_sidecar)


def _amounts(fields: Fields, key: str) -> dict[str, int]:
    section = fields.section(key)
    found = {}
    for name in section.values:
        found[str(name)] = section.get(name, _CPUS if name == CPU else _AMOUNT, 0)
    return {name: amount for name, amount in found.items() if _is_counted(name)}


def _amount(value: object, parts: int) -> int:
    if isinstance(value, float):  # 0.5, as YAML reads it
        value = repr(value)
    found = quantity(value, parts)
    if found is None or not 0 <= found <= _MOST:
        raise ValueError("no quantity")
    return found


_AMOUNT = Kind(partial(_amount, parts=1), "a quantity such as 2 or 4Gi, at most 1P")
_CPUS = Kind(partial(_amount, parts=1000), "a quantity of CPUs such as 2 or 500m, at most 1T")


def _term(fields: Fields) -> Term:
    # The only field that one can match is a node's name.
    by_name = (each._replace(key=FIELD) for each in _matches(fields, "matchFields"))
    return (*_matches(fields, "matchExpressions"), *by_name)


def _matches(fields: Fields, key: str) -> tuple[Match, ...]:
    return tuple(
        Match(
            row.need("key", _TEXT, ""),
            row.need("operator", _OPERATORS, "Exists"),
            tuple(row.row("values").get(f"values[{n}]", _TEXT, "") for n in _count(row, "values")),
        )
        for row in fields.sections(key)
    )


def _count(fields: Fields, key: str) -> range:
    return range(len(fields.row(key).values))


def _toleration(fields: Fields) -> Toleration:
    value: str | None = fields.get("value", _TEXT, "")
    if fields.get("operator", choice("Equal", "Exists"), "Equal") == "Exists":
        value = None
    return Toleration(fields.get("key", _TEXT, ""), value, fields.get("effect", _EFFECTS, ""))


def _spreads(spec: Fields) -> Iterator[Spread]:
    for row in spec.sections("topologySpreadConstraints"):
        if row.get("whenUnsatisfiable", _TEXT, "") != "DoNotSchedule":
            continue
        selector = row.section("labelSelector")
        labels = texts(selector, "matchLabels").items()
        matches = [Match(key, "In", (value,)) for key, value in labels]
        matches += _matches(selector, "matchExpressions")
        key, skew = row.need("topologyKey", _TEXT, ""), row.get("maxSkew", whole(1, 10**6), 1)
        yield Spread(key, skew, tuple(matches))
