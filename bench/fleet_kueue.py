"""Kueue as a second real client: its quota on nvidia.com/gpumem must hold."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trustme
import yaml

from bench.fleet_memory import pool_file
from bench.progress import say
from bench.report import Figure, Section
from hami_mock.fleet.nodes import node_object, state_of
from hami_mock.fleet.sandbox import Sandbox, free_ports
from hami_mock.settings.settings import load_pools
from tests.e2e.harness.errors import RequirementsMissing
from tests.e2e.harness.kwok_program import CRDS, kueue
from tests.fleet.api import NODES, Api, Object
from tests.fleet.pods import pod

_GROUP = "/apis/kueue.x-k8s.io/v1beta1"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MEMORY = "nvidia.com/gpumem"
_EACH, _QUOTA, _COUNT = 10_000, 100_000, 40
_NODES = 20
_WAIT_S = 300.0


def kueue_figures(running: Sandbox) -> Section:
    """Let Jobs that ask for four times the quota wait for each other."""
    title = f"Kueue 0.14: {_COUNT} Jobs of {_EACH:,} MiB in a quota of {_QUOTA:,}"
    try:
        folder = kueue()
    except RequirementsMissing as error:
        return Section(title, [], notes=[f"not measured: {error}"])
    say("kueue: it starts")
    api = Api(running.kubeconfig)
    for node in _nodes(running):
        api.post(NODES, node)
    for file in sorted((folder / CRDS).iterdir()):
        api.post(_CRDS, yaml.safe_load(file.read_text()))
    api.wait("CRDs", _CRDS, _is_served, lambda seen: not seen[False], seconds=_WAIT_S)
    api.post("/api/v1/namespaces", _named("v1", "Namespace", "kueue-system"))
    for path, thing in _for_certificates():
        api.post(path, thing)
    config = _configure(running.folder / "kueue")
    gates = "--feature-gates=VisibilityOnDemand=false"
    words = [str(folder / "kueue"), f"--config={config}", gates]
    running.start("kueue", words, {"KUBECONFIG": str(running.kubeconfig)})
    for kind, thing in _queues():
        api.post(f"{_GROUP}/{kind}", thing)
    began = time.monotonic()
    for number in range(_COUNT):
        api.post(_JOBS, _job(number))
    most, done = _follow(api)
    return Section(
        title,
        [
            Figure("most MiB of Jobs that ran at once", most, "MiB", _QUOTA, is_firm=True),
            Figure("the same, as a part of the quota", most / _QUOTA, "x", at_least=1),
            Figure("Jobs done", done, "", at_least=_COUNT, is_firm=True),
            Figure("all done after", time.monotonic() - began, "s"),
        ],
        notes=[
            "Kueue counts what a pod asks for: 2 cards of 4,000 MiB each are 4,000 for its quota, "
            "and 8,000 for HAMi's scheduler."
        ],
    )


def _follow(api: Api) -> tuple[int, int]:
    """The most memory that Jobs had at once, and how many have ended."""
    most = 0

    def good(seen: Any) -> bool:
        nonlocal most
        most = max(most, seen["runs"] * _EACH)
        return bool(seen["done"] == _COUNT)

    counts = api.wait("Jobs", _JOBS, _state, good, seconds=_WAIT_S)
    return most, counts["done"]


def _state(job: Object) -> str:
    if job.get("status", {}).get("succeeded"):
        return "done"
    return "waits" if job["spec"].get("suspend") else "runs"


def _nodes(running: Sandbox) -> Iterator[dict[str, Any]]:
    file = running.folder / "fleet.yaml"
    file.write_text(pool_file("a", _NODES))
    (pool,) = load_pools(str(file))
    for index in range(_NODES):
        yield node_object(pool, state_of(pool, index), "kueue", int(time.time()))


def _configure(folder: Path) -> Path:
    """Write Kueue's configuration, and a certificate for its webhooks, which nobody calls."""
    folder.mkdir()
    own = trustme.CA().issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(folder / "tls.key")
    own.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    (port,) = free_ports(1)
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        # Without it Kueue wants certificates in a folder of the machine's own.
        "internalCertManagement": {"enable": True},
        "clientConnection": {"qps": 200, "burst": 400},
        "integrations": {"frameworks": ["batch/job"]},
    }
    file = folder / "config.json"
    file.write_text(json.dumps(config))
    return file


def _for_certificates() -> Iterator[tuple[str, dict[str, Any]]]:
    """What Kueue's manifests have, and it fills by itself: a secret, and webhooks (here none)."""
    secret = _named("v1", "Secret", "kueue-webhook-server-cert")
    yield "/api/v1/namespaces/kueue-system/secrets", secret
    for kind in ("Validating", "Mutating"):
        name = f"kueue-{kind.lower()}-webhook-configuration"
        hooks = _named("admissionregistration.k8s.io/v1", f"{kind}WebhookConfiguration", name)
        group = "/apis/admissionregistration.k8s.io/v1"
        yield f"{group}/{kind.lower()}webhookconfigurations", {**hooks, "webhooks": []}


def _queues() -> Iterator[tuple[str, dict[str, Any]]]:
    version = "kueue.x-k8s.io/v1beta1"
    yield "resourceflavors", _named(version, "ResourceFlavor", "a100")
    quotas = [
        {"name": _MEMORY, "nominalQuota": _QUOTA},
        {"name": "nvidia.com/gpu", "nominalQuota": 1000},
    ]
    group = {
        "coveredResources": [each["name"] for each in quotas],
        "flavors": [{"name": "a100", "resources": quotas}],
    }
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    yield "clusterqueues", {**_named(version, "ClusterQueue", "all"), "spec": spec}
    queue = _named(version, "LocalQueue", "queue")
    queue["metadata"]["namespace"] = "default"
    yield "namespaces/default/localqueues", {**queue, "spec": {"clusterQueue": "all"}}


def _job(number: int) -> dict[str, Any]:
    wants = {"nvidia.com/gpu": 1, _MEMORY: _EACH}
    template = pod(f"job-{number}", wants, duration="3s")
    job = _named("batch/v1", "Job", f"job-{number}")
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "queue"}
    metadata = {"annotations": template["metadata"]["annotations"]}
    # Its webhook would suspend it; there is none.
    spec = {"suspend": True, "template": {"metadata": metadata, "spec": template["spec"]}}
    return {**job, "spec": spec}


def _named(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def _is_served(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
