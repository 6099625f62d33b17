"""The Helm chart gives the same pods and rights as the manifests, and leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.defaults import DEFAULT_COUNTS
from tests.unit.deploy.program import planned

from .conftest import skip_or_fail
from .harness import ClusterApi, CommandFailed, RequirementsMissing, helm
from .harness.commands import run
from .mock import MANIFESTS, NAMESPACE, OVERLAYS, RBAC, ROOT, TIMEOUT_S, Mock, nvidia_counts

CHART = ROOT / "charts" / "hami-mock"
RELEASE = "hami-mock"
KINDS = "daemonsets,configmaps,secrets,serviceaccounts,roles,clusterroles,clusterrolebindings"
FLEET = """
nvidia: {{cards: {cards}, model: T4}}
mlu: {{cards: 0}}
iluvatar: {{cards: 0}}
ascend: {{cards: 0}}
"""
Document = dict[str, Any]


@dataclass
class Helm:
    """Helm itself, with all that it writes in a folder of the test's."""

    cluster: ClusterApi
    program: Path
    home: Path

    def __call__(self, verb: str, *words: str | Path) -> str:
        kept = {f"HELM_{name}_HOME": str(self.home) for name in ("CACHE", "CONFIG", "DATA")}
        argv = self.cluster.client_argv(self.program, verb, *words)
        return run(argv, env={**os.environ, **kept})

    def template(self, *words: str | Path) -> list[Document]:
        text = self("template", RELEASE, CHART, f"--namespace={NAMESPACE}", *words)
        return documents(text)


def documents(text: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.fixture
def chart(any_cluster: ClusterApi, tmp_path: Path) -> Helm:
    try:
        return Helm(any_cluster, helm(), tmp_path)
    except RequirementsMissing as missing:
        skip_or_fail(missing)
        raise


@pytest.fixture
def release(chart: Helm, mock: Mock) -> Iterator[Helm]:
    """Where the chart may be installed; afterwards no release is there."""
    # What other tests left for the next deployment isn't helm's to take over.
    mock.cluster.kubectl("delete", "-f", RBAC, "--ignore-not-found")
    yield chart
    chart("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--ignore-not-found", "--wait")


def values_of(kind: str) -> list[str | Path]:
    """How the chart is told to be what the overlay of that name is."""
    match kind:
        case "plain":
            return []
        case "fleet":
            return ["--set-file", f"fleet={OVERLAYS / 'fleet' / 'fleet.yaml'}"]
        case "scenario":
            scenario = ROOT / "examples" / "scenarios" / "chaos.yaml"
            return ["--set=events=true", "--set-file", f"scenario={scenario}"]
        case _:
            return ["--values", CHART / "ci" / f"{kind}-values.yaml"]


KINDS_OF_NODES = ["plain", *sorted(folder.name for folder in OVERLAYS.iterdir())]


@pytest.mark.parametrize("kind", KINDS_OF_NODES)
def test_the_chart_gives_the_pods_and_rights_of_the_overlay(chart: Helm, kind: str) -> None:
    folder = MANIFESTS if kind == "plain" else OVERLAYS / kind
    right = documents(chart.cluster.kubectl("kustomize", folder))
    made = chart.template(*values_of(kind))
    assert pod_spec(made) == pod_spec(right)
    assert rights(made) == rights(right)


def pod_spec(told: list[Document]) -> Document:
    """The pod's, in one order, and without what only kustomize does."""
    (daemon_set,) = (document for document in told if document["kind"] == "DaemonSet")
    spec: Document = daemon_set["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    lists_and_keys = (
        (container, "env"), (container, "ports"), (container, "volumeMounts"), (spec, "volumes")
    )  # fmt: skip
    for lists, key in lists_and_keys:
        lists[key].sort(key=lambda entry: str(entry["name"]))
    for entry in container["env"]:
        # The overlay has all of the examples there; the chart has the one that it was given.
        if entry["name"] == "HAMI_MOCK_SCENARIO":
            entry["value"] = str(Path(entry["value"]).parent)
    for volume in spec["volumes"]:
        # Kustomize adds a hash to the name.
        if "configMap" in volume:
            volume["configMap"]["name"] = "-".join(volume["configMap"]["name"].split("-")[:3])
    return spec | {"strategy": daemon_set["spec"]["updateStrategy"]}


def rights(told: list[Document]) -> set[tuple[str, str, str]]:
    """Namespace (or none), resource and verb of all that the agent may do."""
    return {
        (document["metadata"].get("namespace", ""), resource, verb)
        for document in told
        if document["kind"] in ("Role", "ClusterRole")
        for rule in document["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_chart_has_the_device_classes_of_the_manifests(chart: Helm) -> None:
    right = classes(documents((ROOT / "components" / "dra" / "deviceclasses.yaml").read_text()))
    made: dict[str, set[str]] = {}
    for profile in ("hami", "nvidia", "example"):
        made |= classes(chart.template(f"--set=dra.profile={profile}"))
    assert made == right
    assert not classes(chart.template("--set=dra.profile=hami,dra.deviceClasses=false"))


def classes(told: list[Document]) -> dict[str, set[str]]:
    """What each DeviceClass wants of a device."""
    return {
        document["metadata"]["name"]: {
            term.strip()
            for selector in document["spec"]["selectors"]
            for term in selector["cel"]["expression"].split("&&")
        }
        for document in told
        if document["kind"] == "DeviceClass"
    }


@pytest.mark.parametrize("kind", KINDS_OF_NODES)
def test_lint_finds_nothing(chart: Helm, kind: str) -> None:
    chart("lint", "--strict", CHART, *values_of(kind))


@pytest.mark.parametrize("file", sorted((CHART / "ci").iterdir()), ids=lambda file: file.stem)
def test_the_api_server_accepts_every_file_of_values(chart: Helm, file: Path) -> None:
    made = chart("template", RELEASE, CHART, f"--namespace={NAMESPACE}", "--values", file)
    said = chart.cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=made)
    assert f"daemonset.apps/{RELEASE} created (server dry run)" in said


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("mode=hammy", "'plain', 'hami', 'companion'"),
        ("vendors.nvidai.cards=8", "nvidai"),
        ("vendors.nvidia.card=8", "card"),
        ("vendors.nvidia.cards=many", "cards"),
        ("fleat.nvidia.cards=8", "fleat"),
        ("metrics.dgcm=true", "dgcm"),
        ("metrics.dcgm=9400", "dcgm"),
        ("timeFactor=0", "timeFactor"),
        ("driver.belowNvidiaPlugin=true", "driver/enabled.* must be true"),
        ("mode=hami,driver.enabled=true,driver.belowNvidiaPlugin=true", "mode.* must be 'plain'"),
    ],
)
def test_a_value_that_is_not_there_is_refused(chart: Helm, value: str, message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        chart.template(f"--set={value}")


def test_other_values_reach_the_pod(chart: Helm) -> None:
    made = chart.template(
        "--set=image.repository=registry.example/mock,image.tag=v9",
        "--set=flags.log-level=debug,flags.hami-keep-annotations=true",
        "--set=vendors.nvidia.memory=2000000",
        "--set=nodeSelector.pool=gpu,kubeletDir=/var/lib/k0s/kubelet,rbac.create=false",
        "--set-json", 'env=[{"name": "TZ", "value": "UTC"}]',
    )  # fmt: skip
    spec = pod_spec(made)
    (container,) = spec["containers"]
    assert container["image"] == "registry.example/mock:v9"
    assert container["args"] == ["run", "--hami-keep-annotations=on", "--log-level=debug"]
    variables = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert (variables["HAMI_MOCK_NVIDIA_MEMORY"], variables["TZ"]) == ("2000000", "UTC")
    assert spec["nodeSelector"] == {"pool": "gpu"}
    paths = [volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume]
    assert all(path.startswith("/var/lib/k0s/kubelet/") for path in paths)
    assert rights(made) == set()


@pytest.mark.parametrize(
    ("load", "variable"),
    [
        ('""', None),
        ("0", "0"),
        ("80", "80"),
        ('"sine:20-80:10m"', "sine:20-80:10m"),
        ('[{"time":"1h","utilization":80}]', '[{"time":"1h","utilization":80}]'),
    ],
)
def test_load_reaches_the_pod_as_the_flag_takes_it(
    chart: Helm, load: str, variable: str | None
) -> None:
    told = environment(chart.template("--set-json", f"load={load}"))
    assert told.get("HAMI_MOCK_LOAD") == variable
    if variable is not None:
        assert planned({"HAMI_MOCK_LOAD": variable})


@pytest.mark.parametrize(("factor", "variable"), [("1", None), ("3600", "3600")])
def test_the_time_factor_reaches_the_pod(chart: Helm, factor: str, variable: str | None) -> None:
    told = environment(chart.template(f"--set=timeFactor={factor}"))
    assert told.get("HAMI_MOCK_TIME_FACTOR") == variable


def environment(told: list[Document]) -> dict[str, str | None]:
    (container,) = pod_spec(told)["containers"]
    return {entry["name"]: entry.get("value") for entry in container["env"]}


def test_the_service_monitor_is_that_of_the_examples(chart: Helm) -> None:
    values: list[str | Path] = [*values_of("metrics"), "--set=metrics.serviceMonitor.create=true"]
    made = scraping(chart.template(*values))
    right = documents((ROOT / "examples" / "prometheus" / "service-monitor.yaml").read_text())
    assert made["Service"]["ports"] == scraping(right)["Service"]["ports"]
    assert made["ServiceMonitor"]["endpoints"] == scraping(right)["ServiceMonitor"]["endpoints"]
    chart("lint", "--strict", CHART, *values)


def test_only_what_is_served_is_scraped(chart: Helm) -> None:
    values = "metrics.dcgm=true,metrics.serviceMonitor.create=true"
    made = chart.template(f"--set={values},metrics.serviceMonitor.labels.release=prom")
    endpoints = scraping(made)["ServiceMonitor"]["endpoints"]
    assert [endpoint["port"] for endpoint in endpoints] == ["agent", "dcgm"]
    monitor, service = (find(made, kind) for kind in ("ServiceMonitor", "Service"))
    assert monitor["metadata"]["labels"]["release"] == "prom"
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= service["metadata"]["labels"].items()
    agents = find(made, "DaemonSet")["spec"]["template"]["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= agents


def scraping(told: list[Document]) -> dict[str, Document]:
    return {kind: find(told, kind)["spec"] for kind in ("Service", "ServiceMonitor")}


def find(told: list[Document], kind: str) -> Document:
    (found,) = (document for document in told if document["kind"] == kind)
    return found


def test_it_installs_changes_and_leaves_nothing(release: Helm, mock: Mock, tmp_path: Path) -> None:
    """HAMi's node side, removed as the notes say."""
    mock.forget_plugins(by_status=True)
    fleet = tmp_path / "fleet.yaml"
    settings = [
        *image_and_namespace(mock), "--set=mode=hami,events=true", f"--set-file=fleet={fleet}"
    ]  # fmt: skip
    before = objects(mock)
    fleet.write_text(FLEET.format(cards=3))
    said = release("install", RELEASE, CHART, *settings)
    assert "hami-mock ctl status" in said
    mock.wait_for(nvidia_counts(cards=3, memory=15360))
    mock.wait_until_ready()
    pod = mock.agent_pod()["metadata"]["uid"]
    fleet.write_text(FLEET.format(cards=4))
    release("upgrade", RELEASE, CHART, *settings)
    mock.look_at_files_now()
    mock.wait_for(nvidia_counts(cards=4, memory=15360))
    assert mock.agent_pod()["metadata"]["uid"] == pod, "the file reaches a running agent"
    _, advised, commands = said.partition("Remove everything:")
    assert advised
    for command in commands.splitlines():
        match command.split():
            case ["kubectl", *words]:
                mock.cluster.kubectl(*words)
            case ["helm", verb, *words]:
                release(verb, *words)
    assert objects(mock) <= before
    node = mock.cluster.get("node", mock.cluster.node_name)
    assert not [name for name in node["metadata"]["annotations"] if name.startswith("hami.io/")]


def test_helm_alone_removes_a_plain_one(release: Helm, mock: Mock) -> None:
    before = objects(mock)
    release("install", RELEASE, CHART, *image_and_namespace(mock))
    mock.wait_for(DEFAULT_COUNTS)
    assert any(word.startswith("clusterrole") for word in objects(mock) - before)
    release("uninstall", RELEASE, f"--namespace={NAMESPACE}")
    assert objects(mock) <= before
    mock.cluster.wait("the pods gone", mock.agent_pods, lambda pods: not pods, timeout=TIMEOUT_S)


def image_and_namespace(mock: Mock) -> list[str]:
    repository, _, tag = mock.image.rpartition(":")
    return [f"--namespace={NAMESPACE}", f"--set=image.repository={repository},image.tag={tag}"]


def objects(mock: Mock) -> set[str]:
    words = ["--all-namespaces", "--output=name", "--ignore-not-found"]
    return set(mock.cluster.kubectl("get", KINDS, *words).split())
