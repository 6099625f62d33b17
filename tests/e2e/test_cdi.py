"""What containers get by CDI, from a real runtime that reads the specs: containerd 2."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .driver_clients import UNPRIVILEGED, nvml_in
from .harness import ClusterApi
from .harness.layout import CDI_SPECS
from .mock import TIMEOUT_S, Mock, NotThere, workload
from .test_dra import (
    HAMI,
    MIG,
    MODEL,
    claim,
    claiming,
    deployed,
    holders,
    request,
    start,
    template,
    wait_for_all,
    wait_for_held,
)

pytestmark = [pytest.mark.cdi, pytest.mark.slow, pytest.mark.usefixtures("dra_gates")]

PART = request(HAMI, memory="8Gi", cores="30")
MEMORY = 81920


@pytest.fixture
def node(mock: Mock, tmp_path: Path) -> Iterator[Mock]:
    """Two cards of 80 GiB, with HAMi's names."""
    with deployed(mock, tmp_path, MODEL) as found:
        yield found


@pytest.fixture
def driven(mock: Mock, tmp_path: Path) -> Iterator[Mock]:
    """The same with the driver."""
    with deployed(mock, tmp_path, MODEL, "driver") as found:
        yield found


def specs(mock: Mock) -> dict[str, Any]:
    """File → spec, of all that the runtime would read on the node."""
    listed = mock.machine.run_in_sandbox("find", CDI_SPECS, "-type", "f").split()
    return {
        Path(file).name: json.loads(mock.machine.run_in_sandbox("cat", file)) for file in listed
    }


def wait_for_no_specs(mock: Mock) -> None:
    mock.cluster.wait("no spec", lambda: specs(mock), lambda found: not found, timeout=TIMEOUT_S)


def uuids(mock: Mock) -> dict[str, str]:
    """Card → its UUID, as `ctl status` says."""
    told = json.loads(mock.ctl("status", "-o", "json"))
    return {card["name"]: card["uuid"] for card in told["cards"]}


def given(mock: Mock, name: str) -> dict[str, str]:
    """What a container has of the variables that only a driver sets."""
    found = mock.environment(name)
    return {key: found[key] for key in found if key.startswith(("NVIDIA_", "CUDA_DEVICE_"))}


def test_the_runtime_is_one_that_reads_specs(any_cluster: ClusterApi) -> None:
    told = any_cluster.get("node", any_cluster.node_name)["status"]["nodeInfo"]
    assert not told["containerRuntimeVersion"].startswith("containerd://1.")


def test_a_container_has_the_variables_of_its_claim(node: Mock) -> None:
    node.cluster.apply(template("part", PART))
    wait_for_no_specs(node)
    start(node, "one", "two", template="part")
    wait_for_all(node, "one", "two")
    held = wait_for_held(node, "one", "two")
    for name in ("one", "two"):
        card, memory, cores = held[name]
        assert (memory, cores) == (8192, 30)
        variables = given(node, name)
        assert variables["NVIDIA_VISIBLE_DEVICES"] == uuids(node)[card]
        assert variables["CUDA_DEVICE_MEMORY_LIMIT_0"] == "8192m"
        assert variables["CUDA_DEVICE_SM_LIMIT_0"] == "30"
    claims = node.cluster.get("resourceclaims")["items"]
    expected = {f"k8s.{HAMI}-claim_{each['metadata']['uid']}.json" for each in claims}
    assert len(expected) == 2
    assert set(specs(node)) == expected
    node.delete_pods("one", "two")
    wait_for_no_specs(node)


def test_a_container_that_names_a_request_has_what_its_second_choice_gives(node: Mock) -> None:
    ways = [
        {"name": name, "deviceClassName": HAMI, "capacity": {"requests": {"memory": memory}}}
        for name, memory in (("large", "100Gi"), ("small", "8Gi"))
    ]
    either = {"devices": {"requests": [{"name": "gpu", "firstAvailable": ways}]}}
    node.cluster.apply(template("either", either))
    made = claiming("one", resourceClaimTemplateName="either")
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu", "request": "gpu"}]}
    node.cluster.apply(made)
    wait_for_all(node, "one")
    assert wait_for_held(node, "one")["one"][1] == 8192
    assert given(node, "one")["CUDA_DEVICE_MEMORY_LIMIT_0"] == "8192m"


def test_pods_that_share_a_claim_both_have_it_until_the_last_has_gone(node: Mock) -> None:
    node.cluster.apply(claim("ours", PART))
    for name in ("one", "two"):
        node.cluster.apply(claiming(name, resourceClaimName="ours"))
    wait_for_all(node, "one", "two")
    assert given(node, "one") == given(node, "two")
    assert given(node, "one")["CUDA_DEVICE_MEMORY_LIMIT_0"] == "8192m"
    (file,) = specs(node)
    node.delete_pods("one")
    wait_for_held(node, "two")
    assert list(specs(node)) == [file]
    node.delete_pods("two")
    wait_for_no_specs(node)


def test_a_container_that_starts_again_has_the_same_also_after_an_agent_was_killed(
    node: Mock,
) -> None:
    node.cluster.apply(template("part", PART))
    made = claiming("again", resourceClaimTemplateName="part")
    made["spec"]["restartPolicy"] = "Always"
    node.cluster.apply(made)
    node.wait_for_phase("again", "Running")
    before, written = given(node, "again"), specs(node)
    held, killed = wait_for_held(node, "again"), node.agent_pid()
    node.kill_agent()

    def other_agent() -> int:
        found = node.agent_pid()
        if found == killed:
            raise NotThere("the old agent")
        return found

    node.cluster.wait("another agent", other_agent, bool, timeout=TIMEOUT_S)
    node.wait_until_ready()
    assert wait_for_held(node, "again") == held
    assert specs(node) == written
    first = node.container_ids()["again"]
    # Not by `kubectl exec`: what runs in the container is killed with its first process.
    node.machine.ctr("tasks", "kill", "--signal=SIGTERM", first.removeprefix("containerd://"))

    def running() -> str:
        (told,) = node.cluster.get("pod", "again")["status"]["containerStatuses"]
        return str(told["containerID"]) if "running" in told["state"] else ""

    node.cluster.wait(
        "another container", running, lambda found: found not in ("", first), timeout=TIMEOUT_S
    )
    assert before["CUDA_DEVICE_MEMORY_LIMIT_0"] == "8192m"
    assert given(node, "again") == before


def test_a_container_has_the_driver_and_sees_its_own_card_only(driven: Mock) -> None:
    driven.cluster.apply(template("part", PART))
    images = {"debian": driven.image, "busybox": workload()}
    for name, image in images.items():
        made = claiming(name, resourceClaimTemplateName="part")
        made["spec"]["containers"][0] |= {
            "image": image, "command": ["sleep", "infinity"], "securityContext": UNPRIVILEGED,
        }  # fmt: skip
        driven.cluster.apply(made)
    wait_for_all(driven, *images)
    cards = wait_for_held(driven, *images)
    own = {name: uuids(driven)[card] for name, (card, *_) in cards.items()}
    with nvml_in(driven.cluster, "debian") as nvml:
        assert [card.uuid for card in nvml.look()] == [own["debian"]]

    def in_busybox(*words: str) -> str:
        return driven.cluster.kubectl("exec", "busybox", "--", *words)

    card, *_ = cards["busybox"]
    nodes = in_busybox("sh", "-c", "ls -d /dev/nvidia[0-9]* /dev/nvidiactl").split()
    assert nodes == [f"/dev/nvidia{card.rpartition('/')[2]}", "/dev/nvidiactl"]
    in_busybox("sh", "-c", f"true <{nodes[0]}")
    (line,) = in_busybox("/usr/bin/nvidia-smi", "-L").splitlines()
    assert line == f"GPU 0: NVIDIA A100-SXM4-80GB (UUID: {own['busybox']})"


def test_an_instance_is_visible_by_its_own_uuid(mock: Mock, tmp_path: Path) -> None:
    cut = {"HAMI_MOCK_DRA": "nvidia", "HAMI_MOCK_NVIDIA_CARDS": "1", "HAMI_MOCK_NVIDIA_MIG": ""}
    with deployed(mock, tmp_path, {**MODEL, **cut}) as node:
        for name in ("3g.40gb", "1g.10gb"):
            node.cluster.apply(template(name[:2], request(MIG, profile=name)))
            start(node, f"pod-{name[:2]}", template=name[:2])
        names = ("pod-3g", "pod-1g")
        wait_for_all(node, *names)
        wait_for_held(node, *names)
        (own,) = holders(node).values()
        instances = {each["pod"]: each["instances"][0]["uuid"] for each in own}
        found = {name: given(node, name)["NVIDIA_VISIBLE_DEVICES"] for name in names}
        assert found == instances
        assert len(set(found.values())) == 2
        assert all(uuid.startswith("MIG-") for uuid in found.values())
