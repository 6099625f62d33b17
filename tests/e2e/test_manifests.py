"""People apply two files. They work as they are, and so do the overlays and HAMi's own manifest."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
import yaml

from tests.defaults import DEFAULT_COUNTS
from tests.unit.deploy import kustomizations

from .mock import (
    IMAGE,
    NAMESPACE,
    OVERLAYS,
    PLUGIN,
    RBAC,
    TIMEOUT_S,
    Figures,
    Mock,
    nvidia_counts,
)

HAMI_MANIFEST = f"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: hami-mock-device-plugin-daemonset, namespace: {NAMESPACE}}}
spec:
  selector: {{matchLabels: {{name: hami-mock-dp-ds}}}}
  template:
    metadata: {{labels: {{name: hami-mock-dp-ds}}}}
    spec:
      tolerations: [{{key: CriticalAddonsOnly, operator: Exists}}]
      containers:
        - name: hami-mock-dp-cntr
          image: {IMAGE}
          env:
            - name: NODE_NAME
              valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}
          command:
            - ./k8s-device-plugin
            - -v=5
            - -debug=false
            - -logtostderr=true
            - -alsologtostderr
            - -stderrthreshold=INFO
            - -log_dir=/tmp
            - -vmodule=
            - -log_backtrace_at=:0
            - -resource-name=nvidia.com/gpu
            - --resource-mem=nvidia.com/gpumem
            - --resource-cores=nvidia.com/gpucores
            - --resource-mem-percentage=nvidia.com/gpumem-percentage
            - --mlu-resource-name=cambricon.com/vmlu
            - --mlu-resource-memory-name=huawei.com/Ascend910-memory
            - --iluvatar-resource-name=iluvatar.ai/vgpu
            - --iluvatar-core-name=iluvatar.ai/MR-V100.vCore
          securityContext:
            privileged: true
            capabilities: {{drop: [ALL], add: [SYS_ADMIN]}}
          volumeMounts:
            - {{name: dp, mountPath: /var/lib/kubelet/device-plugins}}
            - {{name: sys, mountPath: /sys}}
      volumes:
        - {{name: dp, hostPath: {{path: /var/lib/kubelet/device-plugins}}}}
        - {{name: sys, hostPath: {{path: /sys}}}}
"""


def test_two_files_give_the_node_all_eight_resources(mock: Mock, figures: Figures) -> None:
    began = time.monotonic()
    mock.cluster.kubectl("apply", "-f", RBAC, "-f", PLUGIN)
    mock.wait_for(DEFAULT_COUNTS, timeout=30)
    figures.add(mock.cluster.version, "kubectl apply to allocatable", time.monotonic() - began)
    mock.wait_until_ready()
    described = mock.cluster.kubectl("describe", "node", mock.cluster.node_name)
    for name, count in DEFAULT_COUNTS.items():
        assert (
            len(re.findall(rf"^  {re.escape(name)}: +{_shown(count)}$", described, re.MULTILINE))
            == 2
        )


def _shown(count: int) -> str:
    return f"({count}|{count // 1000}k)"


def test_an_idle_agent_costs_next_to_nothing(mock: Mock, figures: Figures) -> None:
    mock.deploy()
    mock.wait_for(DEFAULT_COUNTS)
    mock.wait_until_ready()
    checkpoint = mock.machine.device_plugin_dir / "kubelet_internal_checkpoint"
    pid = mock.agent_pid()
    mock.cluster.wait(
        "the kubelet has written down the lists that it got",
        lambda: time.time() - checkpoint.stat().st_mtime,
        lambda age: age > 5,
        timeout=TIMEOUT_S,
    )
    seconds = 60.0
    used, seen, writes = _cpu_seconds(pid), checkpoint.stat().st_mtime_ns, 0
    names = _registered(checkpoint)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.2)  # nothing tells of writes to a file inside of another mount namespace
        now = checkpoint.stat().st_mtime_ns
        if now != seen:
            # Resources of earlier cases are forgotten five minutes after their plugins have gone.
            before, names = names, _registered(checkpoint)
            writes += not names < before
        seen = now
    release = mock.cluster.version
    figures.add(release, "kubelet checkpoint writes in an idle minute", writes, "")
    figures.add(release, "agent's CPU in an idle minute", _cpu_seconds(pid) - used, "s")
    figures.add(release, "agent's resident memory", _resident_mib(pid), "MiB")
    assert writes == 0


def _registered(checkpoint: Path) -> set[str]:
    return set(json.loads(checkpoint.read_text())["Data"]["RegisteredDevices"] or ())


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _resident_mib(pid: int) -> float:
    return int(_status(pid)["VmRSS"].split()[0]) / 1024


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def accepts(mock: Mock, folder: Path) -> bool:
    """Tell whether the API server takes every object of a kustomization, without keeping any."""
    said = mock.cluster.kubectl("apply", "--dry-run=server", "-k", folder)
    return "daemonset.apps/hami-mock created (server dry run)" in said


@pytest.mark.parametrize("overlay", kustomizations.OVERLAYS)
def test_the_api_server_accepts_every_overlay(mock: Mock, overlay: str) -> None:
    assert accepts(mock, OVERLAYS / overlay)


@pytest.mark.parametrize("names", kustomizations.sensible_combinations(most=2), ids="+".join)
def test_the_api_server_accepts_components_together(
    mock: Mock, tmp_path: Path, names: tuple[str, ...]
) -> None:
    assert accepts(mock, kustomizations.write_combination(tmp_path, names))


def test_a_node_of_hamis_says_what_happens_to_the_cards_of_its_file(
    mock: Mock, tmp_path: Path
) -> None:
    """Three components at work together: each shows in its own way."""
    names = ("hami", "events", "fleet")
    with mock.applied(kustomizations.write_combination(tmp_path, names)):
        mock.wait_for(nvidia_counts(cards=3, memory=15360))
        node = mock.cluster.get("node", mock.cluster.node_name)
        registered = json.loads(node["metadata"]["annotations"]["hami.io/node-nvidia-register"])
        assert len(registered) == 3
        mock.ctl("fail", "nvidia/0", "--reason", "three components")
        mock.cluster.wait(
            "the Event of the failed card",
            lambda: mock.cluster.kubectl("describe", "node", mock.cluster.node_name),
            lambda told: "three components" in told,
            timeout=TIMEOUT_S,
        )


def test_the_api_server_accepts_the_two_files(mock: Mock) -> None:
    said = mock.cluster.kubectl("apply", "--dry-run=server", "-f", RBAC, "-f", PLUGIN)
    assert said.count("(server dry run)") == 4


def test_the_agent_has_no_privilege_to_lose(mock: Mock) -> None:
    mock.deploy()
    mock.wait_until_ready()
    status = _status(mock.agent_pid())
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def _rights(mock: Mock, account: str) -> set[str]:
    who = f"--as=system:serviceaccount:{NAMESPACE}:{account}"
    listed = mock.cluster.kubectl("auth", "can-i", "--list", who, "--no-headers")
    return {" ".join(line.split()) for line in listed.splitlines()}


def test_it_may_do_what_its_role_says_and_nothing_else(mock: Mock) -> None:
    mock.deploy()
    # Every account may do a little, and with each release of Kubernetes a little more.
    assert _rights(mock, "hami-mock") - _rights(mock, "default") == {
        "nodes [] [] [get watch]",
        "nodes/status [] [] [patch]",
        "pods [] [] [list watch]",
    }


def test_the_fleet_overlay_gives_a_node_its_section(mock: Mock) -> None:
    fleet = yaml.safe_load((OVERLAYS / "fleet" / "fleet.yaml").read_text())
    fleet["nodes"].insert(0, {"match": "mock-*", "nvidia": {"cards": 3, "memory": 100}})
    mock.deploy(config=fleet)
    mock.wait_for({"nvidia.com/gpu": 30, "nvidia.com/gpumem": 300})


def test_a_manifest_of_hamis_mock_works_with_only_the_image_changed(mock: Mock) -> None:
    mock.cluster.kubectl("apply", "-f", "-", stdin=HAMI_MANIFEST)
    mock.wait_for(DEFAULT_COUNTS)
