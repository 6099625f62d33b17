"""What a deployment lets the agent do, and whom it lets near the agent."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from hami_mock.settings import places
from tests.unit.deploy.kustomizations import COMPONENTS, OVERLAYS, patches, variables
from tests.unit.deploy.program import ROOT

MANIFESTS = ROOT / "manifests"
FOLDERS = {"manifests": MANIFESTS} | {
    f"{parent}/{name}": folder
    for parent, folders in (("components", COMPONENTS), ("overlays", OVERLAYS))
    for name, folder in folders.items()
}


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def of_kind(kind: str) -> dict[str, Any]:
    every = [d for file in MANIFESTS.glob("k8s-*.yaml") for d in documents(file)]
    (found,) = (document for document in every if document["kind"] == kind)
    return found


def base_pod() -> dict[str, Any]:
    template: dict[str, Any] = of_kind("DaemonSet")["spec"]["template"]
    return template


def mounts_token(folder: Path) -> bool:
    """Whether the pod of a kustomization, as its patches leave it, has a token."""
    key = "automountServiceAccountToken"
    told = [base_pod()["spec"][key]]
    told += [patch["spec"]["template"]["spec"].get(key) for patch in patches(folder)]
    return bool([each for each in told if each is not None][-1])


def asks_the_api_server(told: dict[str, str]) -> bool:
    registers = told.get("HAMI_MOCK_DEVICE_PLUGINS") != "off"
    return (
        # Units may stand in the Node's status.
        (registers and told.get("HAMI_MOCK_UNITS") != "plugin")
        or told.get("HAMI_MOCK_HAMI") == "on"
        or told.get("HAMI_MOCK_SOURCE") == "hami"
        or told.get("HAMI_MOCK_KUBERNETES_EVENTS") == "on"
        or told.get("HAMI_MOCK_PODS") == "on"
        or bool(told.get("HAMI_MOCK_LABELS"))
        or bool(told.get("HAMI_MOCK_DRA"))
        or any(n.endswith("_MEMORY_FACTOR") and v == "auto" for n, v in told.items())
        # A section of the file may say auto.
        or "HAMI_MOCK_CONFIG" in told
    )


# Of a component alone nobody knows what else the agent does.
WHOLE = {name: folder for name, folder in FOLDERS.items() if not name.startswith("components/")}


@pytest.mark.parametrize("folder", WHOLE.values(), ids=WHOLE)
def test_a_pod_has_a_token_if_and_only_if_it_asks_the_api_server(folder: Path) -> None:
    assert mounts_token(folder) == asks_the_api_server(variables(folder))


def test_no_component_takes_the_token_away_or_gives_it() -> None:
    for folder in COMPONENTS.values():
        for patch in patches(folder):
            assert "automountServiceAccountToken" not in patch["spec"]["template"]["spec"]


def test_the_service_account_gives_no_token_to_who_does_not_ask_for_one() -> None:
    assert of_kind("ServiceAccount")["automountServiceAccountToken"] is False


def test_the_agent_is_root_and_nothing_more() -> None:
    pod = base_pod()["spec"]
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "runAsUser": 0,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
    assert writable == {"/var/lib/kubelet/device-plugins", "/run/hami-mock"}


DRIVER_ROOT = "/var/lib/hami-mock/driver"
# Folder of the node → where the agent writes it: the driver root, CDI's folder within or by itself,
# a DRA driver's sockets.
WRITTEN = {
    DRIVER_ROOT: {DRIVER_ROOT},
    "/var/run/cdi": {f"{DRIVER_ROOT}/cdi", "/var/run/cdi"},
    "/var/lib/kubelet/plugins": {"/var/lib/kubelet/plugins"},
    "/var/lib/kubelet/plugins_registry": {"/var/lib/kubelet/plugins_registry"},
}


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_no_patch_takes_any_of_that_back(folder: Path) -> None:
    for patch in patches(folder):
        spec = patch["spec"]["template"]["spec"]
        assert set(spec) <= {"automountServiceAccountToken", "containers", "volumes"}
        assert "containers" in spec or set(spec) == {"automountServiceAccountToken"}
        (container,) = spec.get("containers", ({},))
        allowed = {"name", "env", "ports", "securityContext", "volumeMounts"}
        assert set(container) <= allowed
        # None of them is a port of the node's.
        assert all(set(p) == {"name", "containerPort"} for p in container.get("ports", ()))
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        for mount in container.get("volumeMounts", ()):
            host = volumes[mount["name"]].get("hostPath")
            assert mount.get("readOnly") or mount["mountPath"] in WRITTEN[host["path"]]
        assert all(
            {*volume} - {"name", "configMap", "hostPath"} == set() for volume in volumes.values()
        )


def test_device_nodes_take_one_capability_and_only_there() -> None:
    told = {
        name: patch["spec"]["template"]["spec"]["containers"][0]["securityContext"]
        for name, folder in COMPONENTS.items()
        for patch in patches(folder)
        if "securityContext" in patch["spec"]["template"]["spec"]["containers"][0]
    }
    assert told == {"driver-only": {"capabilities": {"add": ["MKNOD"]}}}


def test_the_driver_root_is_where_the_program_has_it() -> None:
    assert DRIVER_ROOT == places.DRIVER_ROOT
    chart = yaml.safe_load((ROOT / "charts/hami-mock/values.yaml").read_text())
    assert chart["driver"]["root"] == DRIVER_ROOT


def test_the_network_policy_is_for_the_agent_and_its_ports() -> None:
    (policy,) = documents(ROOT / "examples" / "network-policy.yaml")
    assert (policy["apiVersion"], policy["kind"]) == ("networking.k8s.io/v1", "NetworkPolicy")
    assert policy["metadata"]["namespace"] == of_kind("DaemonSet")["metadata"]["namespace"]
    spec = policy["spec"]
    assert spec["podSelector"]["matchLabels"] == base_pod()["metadata"]["labels"]
    # Nothing is said of what the agent may reach: some modes need the API server.
    assert spec["policyTypes"] == ["Ingress"]
    ((rule),) = spec["ingress"]
    known = [port["containerPort"] for port in ports(COMPONENTS["metrics"])]
    assert rule["ports"] == [{"protocol": "TCP", "port": port} for port in known]
    (source,) = rule["from"]
    assert source == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    }


def ports(*folders: Path) -> list[dict[str, Any]]:
    """The pod's ports, and those that the patches of kustomizations add."""
    made = [base_pod()["spec"]]
    made += [patch["spec"]["template"]["spec"] for folder in folders for patch in patches(folder)]
    return [port for spec in made for port in spec["containers"][0].get("ports", ())]


def test_every_exporter_has_the_port_that_it_listens_on_and_the_examples_scrape() -> None:
    named = {port["name"]: port["containerPort"] for port in ports(COMPONENTS["metrics"])}
    own = named.pop("http")
    listening = variables(COMPONENTS["metrics"]).values()
    assert sorted(listening) == sorted(f":{port}" for port in named.values())
    service, _ = documents(ROOT / "examples" / "prometheus" / "service-monitor.yaml")
    scraped = {port["name"]: port["targetPort"] for port in service["spec"]["ports"]}
    assert scraped == {"agent": own, **named}
    configured = (ROOT / "examples" / "prometheus" / "scrape-config.yaml").read_text()
    assert set(re.findall(r'replacement: "\$1:(\d+)"', configured)) == {
        str(port) for port in scraped.values()
    }


def test_the_image_says_what_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "Containerfile").read_text()
    prefix = "org.opencontainers.image."
    lines = [line.strip(" \\") for line in text.splitlines() if prefix in line]
    told = dict(line.removeprefix("LABEL ").split("=", 1) for line in lines if "=" in line)
    assert {key.strip().removeprefix(prefix): value.strip('"') for key, value in told.items()} == {
        "title": project["name"],
        "description": project["description"],
        "version": project["version"],
        "licenses": project["license"],
        "base.name": "${BASE}",
    }


def test_the_docs_list_every_verb_of_every_role_and_no_other() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    section = page.split("## Permissions")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| ([^|]+?) \| (\w+) \| .+ \|$", section, re.MULTILINE)
    told = set(rows) - {("mode", "resource", "verb")}
    files = {"plain": MANIFESTS / "k8s-mock-rbac.yaml"} | {
        name: folder / "rbac.yaml"
        for name, folder in COMPONENTS.items()
        if (folder / "rbac.yaml").exists()
    }
    allowed = set()
    for mode, file in files.items():
        for role in documents(file):
            space = role["metadata"].get("namespace")
            for rule in role.get("rules", ()):
                (resource,) = rule["resources"]
                # Two groups, and no resource is in both.
                assert rule["apiGroups"] == ["resource.k8s.io" if "resource" in resource else ""]
                where = f" in `{space}`" if space else ""
                allowed |= {(mode, f"{resource}{where}", verb) for verb in rule["verbs"]}
    assert told == allowed
