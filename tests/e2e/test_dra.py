"""The DRA driver on a real node: claims that share cards, MIG, health, and what restarts leave."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.deploy import kustomizations

from .harness import NotReachedInTime
from .mock import TIMEOUT_S, Figures, Mock, container, pod

pytestmark = pytest.mark.usefixtures("dra_gates")

API = "resource.k8s.io/v1"
HAMI, NVIDIA, MIG = "hami-core-gpu.project-hami.io", "gpu.nvidia.com", "mig.nvidia.com"
MODEL = {"HAMI_MOCK_NVIDIA_MODEL": "A100-SXM4-80GB"}
NO_DEVICE = "cannot allocate all claims"


@contextmanager
def deployed(
    mock: Mock, folder: Path, variables: Mapping[str, str], *components: str
) -> Iterator[Mock]:
    """The component dra with these variables and others too; afterwards no claim is left."""
    kustomizations.write_combination(folder, ("dra", *components, "nvidia-only"))
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())
    env = [{"name": name, "value": value} for name, value in variables.items()]
    patch = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "hami-mock", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "hami-mock", "env": env}]}}},
    }
    (folder / "more.yaml").write_text(yaml.safe_dump(patch))
    (folder / "kustomization.yaml").write_text(
        yaml.safe_dump({**told, "patches": [{"path": "more.yaml"}]})
    )
    with mock.applied(folder):
        mock.wait_until_ready()
        try:
            yield mock
        finally:
            # While the agent is there: a pod's end waits for who gives its claims back.
            mock.delete_pods()
            mock.cluster.kubectl("delete", "resourceclaims,resourceclaimtemplates", "--all")


@pytest.fixture
def node(mock: Mock, tmp_path: Path) -> Iterator[Mock]:
    """Two cards of 80 GiB, with HAMi's names."""
    with deployed(mock, tmp_path, MODEL) as found:
        yield found


def request(cls: str, *, profile: str = "", **capacity: str) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": cls}
    if capacity:
        exactly["capacity"] = {"requests": capacity}
    if profile:
        cel = f"device.attributes['{NVIDIA}'].profile == '{profile}'"
        exactly["selectors"] = [{"cel": {"expression": cel}}]
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def claim(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def template(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**claim(name, {"spec": spec}), "kind": "ResourceClaimTemplate"}


def claiming(name: str, **of: str) -> dict[str, Any]:
    """A pod with a claim of its own (resourceClaimTemplateName) or with one (resourceClaimName)."""
    made = pod(name, {**container("main", {}), "resources": {"claims": [{"name": "gpu"}]}})
    made["spec"]["resourceClaims"] = [{"name": "gpu", **of}]
    return made


def start(mock: Mock, *names: str, template: str) -> None:
    for name in names:
        mock.cluster.apply(claiming(name, resourceClaimTemplateName=template))


def wait_for_all(mock: Mock, *names: str) -> None:
    for name in names:
        mock.wait_for_phase(name, "Running")


def devices(mock: Mock) -> dict[str, Any]:
    """All devices of all slices, by name."""
    slices = mock.cluster.get("resourceslices")["items"]
    return {each["name"]: each for one in slices for each in one["spec"].get("devices", ())}


def holders(mock: Mock) -> dict[str, list[dict[str, Any]]]:
    """Card → what pods hold of it, as `ctl status` says."""
    told = json.loads(mock.ctl("status", "-o", "json"))
    return {card["name"]: card["holders"] for card in told["cards"]}


def held(mock: Mock) -> dict[str, tuple[str, int, int]]:
    """Pod → the card, memory and cores that it holds."""
    return {
        holder["pod"]: (card, holder["memory"], holder["cores"])
        for card, own in holders(mock).items()
        for holder in own
    }


def wait_for_held(mock: Mock, *names: str) -> dict[str, tuple[str, int, int]]:
    return mock.cluster.wait(
        f"{names} known as holders",
        lambda: held(mock),
        lambda found: set(found) == set(names),
        timeout=TIMEOUT_S,
    )


def test_claims_share_cards_until_none_has_room(node: Mock, figures: Figures) -> None:
    part = request(HAMI, memory="30Gi", cores="30")
    node.cluster.apply(template("part", part))
    began = time.monotonic()
    four = [f"share-{number}" for number in range(4)]
    start(node, *four, template="part")
    wait_for_all(node, *four)
    figures.add(node.cluster.version, "four pods with claims Running", time.monotonic() - began)
    start(node, "fifth", template="part")
    node.wait_for_scheduling_message("fifth", NO_DEVICE)
    found = wait_for_held(node, *four)
    assert [(memory, cores) for _, memory, cores in found.values()] == [(30720, 30)] * 4
    cards = [card for card, *_ in found.values()]
    assert sorted(cards) == ["nvidia/0", "nvidia/0", "nvidia/1", "nvidia/1"]
    node.delete_pods("share-0")
    node.wait_for_phase("fifth", "Running")


def test_a_claim_that_no_card_can_meet_waits_and_hurts_nobody(node: Mock) -> None:
    node.cluster.apply(template("huge", request(HAMI, memory="100Gi")))
    node.cluster.apply(template("small", request(HAMI, memory="1Gi", cores="1")))
    start(node, "huge", template="huge")
    node.wait_for_scheduling_message("huge", NO_DEVICE)
    start(node, "small", template="small")
    node.wait_for_phase("small", "Running")
    # The doctor says why, from what kubectl shows …
    kinds = "nodes,pods,resourceslices,resourceclaims,resourceclaimtemplates,deviceclasses"
    ran = subprocess.run(
        [sys.executable, "-m", "hami_mock", "doctor", "-f", "-", "--pod", "huge", "-o", "json"],
        input=json.dumps(node.cluster.get(kinds)),
        text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    told = [each for each in json.loads(ran.stdout) if each["subject"] == "Pod default/huge"]
    (finding,) = (each for each in told if each["where"].startswith("claim default/huge-"))
    assert (ran.returncode, finding["severity"]) == (1, "error")
    assert "it asks for 100Gi memory; the largest device, hami-gpu-" in finding["what"]
    assert finding["what"].endswith(" has 80Gi memory")
    assert "scheduler: cannot allocate all claims" in [each["where"] for each in told]
    # … and in the agent's pod, that its node is well.
    (well,) = (each for each in node.doctor() if each["where"] == HAMI)
    assert (well["severity"], well["what"]) == ("ok", "2 devices in 1 ResourceSlice")


def test_two_pods_share_a_claim(node: Mock) -> None:
    node.cluster.apply(claim("ours", request(HAMI, memory="8Gi", cores="10")))
    for name in ("one", "two"):
        node.cluster.apply(claiming(name, resourceClaimName="ours"))
    wait_for_all(node, "one", "two")
    found = wait_for_held(node, "one", "two")
    assert found["one"] == found["two"]
    assert found["one"][1:] == (8192, 10)
    node.delete_pods("one")
    assert wait_for_held(node, "two")["two"] == found["two"]
    node.delete_pods("two")
    wait_for_held(node)


def health(mock: Mock, name: str) -> str:
    """What a pod's status says of the device of its claim."""
    (told,) = mock.cluster.get("pod", name)["status"]["containerStatuses"]
    for row in told.get("allocatedResourcesStatus", ()):
        if row["name"].startswith("claim:"):
            return ",".join(each["health"] for each in row.get("resources", ()))
    return ""


def wait_for_health(mock: Mock, name: str, wanted: str) -> float:
    began = time.monotonic()
    mock.cluster.wait(
        f"pod {name} {wanted}", lambda: health(mock, name), lambda told: told == wanted,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    return time.monotonic() - began


def test_a_card_that_fails_is_seen_in_the_pods_status(node: Mock, figures: Figures) -> None:
    node.cluster.apply(template("part", request(HAMI, memory="30Gi", cores="30")))
    start(node, "a", template="part")
    node.wait_for_phase("a", "Running")
    card, *_ = wait_for_held(node, "a")["a"]
    wait_for_health(node, "a", "Healthy")
    node.ctl("fail", card, "--xid", "79")
    figures.add(
        node.cluster.version,
        "failed card in the pod's status",
        wait_for_health(node, "a", "Unhealthy"),
    )
    node.cluster.wait(
        "its device alone is tainted",
        lambda: [name for name, each in devices(node).items() if each.get("taints")],
        lambda tainted: tainted == [f"hami-gpu-{card[-1]}"],
        timeout=TIMEOUT_S,
    )
    # Nothing more is placed there, and what is there goes on.
    start(node, "b", "c", template="part")
    wait_for_all(node, "b", "c")
    found = wait_for_held(node, "a", "b", "c")
    assert {found["b"][0], found["c"][0]} == {"nvidia/0", "nvidia/1"} - {card}
    node.ctl("recover", card)
    wait_for_health(node, "a", "Healthy")


def test_restarts_with_prepared_claims_lose_nothing(node: Mock, figures: Figures) -> None:
    machine = node.machine
    node.cluster.apply(template("part", request(HAMI, memory="30Gi", cores="30")))
    start(node, "a", "b", template="part")
    wait_for_all(node, "a", "b")
    before, running = wait_for_held(node, "a", "b"), node.container_ids()
    node.kill_agent()
    node.cluster.wait(
        "the agent knows the claims again", lambda: held(node), lambda found: found == before,
        timeout=TIMEOUT_S,
    )  # fmt: skip
    began = time.monotonic()
    machine.restart_kubelet()
    machine.wait_node_ready(timeout=TIMEOUT_S)
    # A kubelet that starts removes all slices of its node.
    node.cluster.wait("the slices are back", lambda: devices(node), bool, timeout=TIMEOUT_S)
    figures.add(
        node.cluster.version, "slices back after a kubelet restart", time.monotonic() - began
    )
    node.wait_until_ready()
    assert node.container_ids() == running
    start(node, "c", template="part")
    node.wait_for_phase("c", "Running")
    assert wait_for_held(node, "a", "b", "c") == {**before, "c": held(node)["c"]}
    node.delete_pods("a", "b", "c")
    wait_for_held(node)


def test_a_node_that_is_made_anew_has_its_slices_again(node: Mock) -> None:
    name = node.cluster.node_name

    def owners() -> set[str]:
        slices = node.cluster.get("resourceslices")["items"]
        return {each["metadata"]["ownerReferences"][0]["uid"] for each in slices}

    node.machine.kill_kubelet()
    node.cluster.kubectl("delete", "node", name)
    node.cluster.wait("the slices went with it", owners, lambda found: not found, timeout=TIMEOUT_S)
    node.machine.start_kubelet()
    node.machine.wait_node_ready(timeout=TIMEOUT_S)
    uid = node.cluster.get("node", name)["metadata"]["uid"]
    node.cluster.wait("its own slices", owners, lambda found: found == {uid}, timeout=TIMEOUT_S)
    node.wait_until_ready()
    node.cluster.apply(template("part", request(HAMI, memory="30Gi")))
    start(node, "late", template="part")
    node.wait_for_phase("late", "Running")


def test_instances_are_placed_by_counters(mock: Mock, tmp_path: Path) -> None:
    one_card = {
        "HAMI_MOCK_DRA": "nvidia",
        "HAMI_MOCK_NVIDIA_CARDS": "1",
        "HAMI_MOCK_NVIDIA_MIG": "",
    }
    with deployed(mock, tmp_path, {**MODEL, **one_card}) as node:
        for name in ("3g.40gb", "2g.20gb", "1g.10gb"):
            node.cluster.apply(template(name[:2], request(MIG, profile=name)))
        for name in ("3g", "2g", "1g"):
            start(node, f"pod-{name}", template=name)
            node.wait_for_phase(f"pod-{name}", "Running")
        start(node, "more", template="1g")
        node.wait_for_scheduling_message("more", NO_DEVICE)
        wait_for_held(node, "pod-3g", "pod-2g", "pod-1g")
        (own,) = holders(node).values()
        placed = {
            holder["pod"]: [(each["profile"], each["start"]) for each in holder["instances"]]
            for holder in own
        }
        assert placed == {
            "pod-3g": [("3g.40gb", 0)],
            "pod-2g": [("2g.20gb", 4)],
            "pod-1g": [("1g.10gb", 6)],
        }
        node.delete_pods("pod-2g")
        node.wait_for_phase("more", "Running")


def test_a_pod_that_asks_for_the_resource_gets_a_card_by_dra(node: Mock) -> None:
    node.start_pod("plain", {"nvidia.com/gpu": 1})
    node.wait_for_phase("plain", "Running")
    assert wait_for_held(node, "plain")["plain"][1:] == (81920, 100)


def test_the_slices_go_with_the_agent(mock: Mock, tmp_path: Path) -> None:
    with deployed(mock, tmp_path, MODEL) as node:
        assert set(devices(node)) == {"hami-gpu-0", "hami-gpu-1"}
        node.remove()
        with pytest.raises(NotReachedInTime):
            node.cluster.wait(
                "slices of an agent that is gone", lambda: devices(node), bool, timeout=2
            )
