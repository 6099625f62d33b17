from typing import Any

import anyio
import pytest

from hami_mock.cli.plan import fleet_lines, node_lines, plan_data
from hami_mock.cli.plan_dra import dra_lines
from hami_mock.node.advice import COUNTED_TWICE, COUNTED_TWICE_REMEDY
from hami_mock.node.ways import Permission
from hami_mock.settings.settings import load
from hami_mock.sources import planning
from hami_mock.sources.configured import configured_node
from hami_mock.sources.planning import Plan
from tests.unit.builders import laid_out

HAMI = "hami-core-gpu.project-hami.io"
KEYS = ["resource", "count", "unit", "cards", "way", "why", "bytes", "limit", "warnings"]


REFUSED = "can't patch nodes/status n1: no (403); the role needs the verb patch for nodes/status"


def planned(version: tuple[int, int] | None = (1, 35), **flags: Any) -> dict[str, Any]:
    return plan_data(load({"node-name": "node-a"}), Plan(laid_out(**flags), version))


def test_a_resource_has_exactly_the_keys_that_were_promised() -> None:
    assert [list(row) for row in planned()["resources"]] == [KEYS] * 8


def test_a_resource_has_its_numbers() -> None:
    rows = {row["resource"]: row for row in planned()["resources"]}
    assert rows["nvidia.com/gpumem"] == {
        "resource": "nvidia.com/gpumem",
        "count": 65536,
        "unit": "1 MiB",
        "cards": 2,
        "way": "plugin",
        "why": "",
        "bytes": 65536 * 16,
        "limit": 4194304,
        "warnings": [],
    }
    assert rows["cambricon.com/vmlu"]["unit"] == "slot"
    assert rows["nvidia.com/gpucores"]["unit"] == "1 %"


def test_a_card_is_what_the_agent_will_have() -> None:
    node = laid_out()
    assert planned()["cards"][0] == {
        "name": "nvidia/0",
        "uuid": node.cards[0].uuid,
        "model": "V100-SXM2-32GB",
        "memory": 32768,
        "numa": None,
        "links": [],
    }


@pytest.mark.parametrize(("version", "warned"), [((1, 35), 0), ((1, 36), 2), (None, 2)])
def test_warnings_depend_on_the_kubelets_version(
    version: tuple[int, int] | None, warned: int
) -> None:
    assert sum(bool(row["warnings"]) for row in planned(version)["resources"]) == warned


def test_the_table_shows_each_resource_with_its_share_of_the_limit() -> None:
    lines = list(node_lines(planned()))
    assert lines[0] == "Node node-a would carry:"
    assert lines[2].split() == ["CARD", "UUID", "MODEL", "MEMORY", "MiB", "NUMA", "LINKED", "TO"]
    assert lines[12] == "and offer:"
    assert lines[17].split() == ["nvidia.com/gpumem", "65536", "1", "MiB", "2", "plugin", "25.0%"]
    assert len(lines) == 15 + 8


def test_a_node_without_device_plugins_registers_nothing() -> None:
    lines = list(node_lines(planned(device_plugins="off")))
    assert lines[-3:] == ["and offer:", "", "no resources"]


def test_what_stands_in_the_status_has_no_list_and_says_why() -> None:
    told = planned(None, units="status")
    rows = {row["resource"]: row for row in told["resources"]}
    assert {name for name, row in rows.items() if row["way"] == "plugin"} == {
        "nvidia.com/gpu", "cambricon.com/vmlu", "iluvatar.ai/vgpu"
    }  # fmt: skip
    assert (rows["nvidia.com/gpumem"]["count"], rows["nvidia.com/gpumem"]["bytes"]) == (65536, 0)
    assert rows["nvidia.com/gpumem"]["why"] == "you chose --units status"
    assert [row["warnings"] for row in told["resources"]] == [[]] * 8
    lines = list(node_lines(told))
    assert lines[17].split() == ["nvidia.com/gpumem", "65536", "1", "MiB", "2", "status", "-"]
    (said,) = (line for line in lines if line.startswith("status: "))
    assert said.startswith("status: nvidia.com/gpucores, nvidia.com/gpumem, ")
    assert said.endswith("in the Node's status, not a plugin's list: you chose --units status")


def test_what_has_a_plugin_says_why_once_for_each_reason() -> None:
    refused = Permission(refusal=REFUSED)
    node = configured_node(load({"node-name": "node-a"}), (1, 35), permission=refused)
    lines = [*node_lines(plan_data(load({"node-name": "node-a"}), Plan(node, (1, 35))))]
    assert [line for line in lines if line.startswith(("plugin: ", "status: "))] == [
        "plugin: nvidia.com/gpucores, nvidia.com/gpumem, nvidia.com/gpumem-percentage, "
        f"iluvatar.ai/MR-V100.vCore, huawei.com/Ascend910-memory: devices of a plugin: {REFUSED}"
    ]


def test_where_the_ways_differ_each_says_why() -> None:
    flags = {"node-name": "node-a", "vendors": "nvidia", "nvidia-memory": "183359"}
    node = configured_node(load(flags), (1, 35), permission=Permission(is_allowed=True))
    lines = [*node_lines(plan_data(load(flags), Plan(node, (1, 35))))]
    assert [line for line in lines if line.startswith(("plugin: ", "status: "))] == [
        "plugin: nvidia.com/gpucores, nvidia.com/gpumem-percentage: devices of a plugin: harmless "
        "on kubelet 1.35",
        "status: nvidia.com/gpumem: in the Node's status, not a plugin's list: 366718 devices "
        "would need a list of at least 5134052 bytes, more than the kubelet takes",
    ]


STATUS_ASSUMED = (
    "the agent may write the Node's status: no API server was asked; the role in "
    "manifests/k8s-mock-rbac.yaml allows it"
)
VERSION_ASSUMED = (
    "the kubelet is 1.36 or newer: its version isn't known; set it with --kubelet-version"
)


@pytest.mark.parametrize(
    ("flags", "assumed"),
    [
        ({}, (STATUS_ASSUMED, VERSION_ASSUMED)),
        ({"kubelet-version": "1.37"}, (STATUS_ASSUMED,)),
        ({"kubelet-version": "1.35"}, ()),
        ({"units": "plugin"}, (VERSION_ASSUMED,)),
        ({"units": "plugin", "nvidia-memory-factor": "auto"}, (VERSION_ASSUMED,)),
        ({"units": "status"}, ()),
        ({"nvidia-cards": "0"}, ()),
        ({"device-plugins": "off"}, ()),
    ],
)
def test_what_a_plan_without_a_cluster_assumes_is_said(
    flags: dict[str, str], assumed: tuple[str, ...]
) -> None:
    settings = load({"node-name": "node-a", "vendors": "nvidia", **flags})
    found = anyio.run(planning.plan, settings)
    assert found.assumed == assumed
    told = plan_data(settings, found)
    assert tuple(told["assumed"]) == assumed
    lines = [line for line in node_lines(told) if line.startswith("assumed: ")]
    assert lines == [f"assumed: {text}" for text in assumed if told["cards"]]
    # Of a fleet it is said once, not of each node.
    lines = [line for line in fleet_lines([told, told]) if line.startswith("assumed: ")]
    assert lines == [f"assumed: {text}" for text in assumed]


def test_the_table_ends_with_the_warnings() -> None:
    lines = list(node_lines(planned(None)))
    assert [line.split(": ")[:2] for line in lines if line.startswith("warning")] == [
        ["warning", "nvidia.com/gpumem"],
        ["warning", "huawei.com/Ascend910-memory"],
    ]


def test_labels_are_shown_if_they_would_be_written() -> None:
    settings = load({"node-name": "node-a", "labels": "hami,operator"})
    plan = plan_data(settings, Plan(laid_out(), (1, 35)))
    assert plan["labels"] == {
        "ascend": "on",
        "gpu": "on",
        "mlu": "on",
        "nvidia.com/gpu.present": "true",
    }
    lines = list(node_lines(plan))
    assert lines[-5].split() == ["LABEL", "VALUE"]
    assert lines[-1].split() == ["nvidia.com/gpu.present", "true"]
    (fleet,) = [list(fleet_lines([plan]))]
    assert fleet[-5:] == lines[-5:]
    assert planned()["labels"] == {}


def test_a_node_without_cards_says_so() -> None:
    *_, last = node_lines(planned(nvidia_cards=0, mlu_cards=0, iluvatar_cards=0, ascend_cards=0))
    assert last == "nothing: no cards are configured for this node"


def with_dra(profile: str, version: tuple[int, int] | None = None, **flags: Any) -> dict[str, Any]:
    settings = load({"node-name": "node-a", "dra": profile})
    return plan_data(settings, Plan(laid_out(device_plugins="off", **flags), version))


def test_without_dra_nothing_is_said_of_it() -> None:
    assert planned()["dra"] is None


def test_drivers_devices_classes_and_slices_of_dra() -> None:
    hami, ascend = with_dra("hami")["dra"]["drivers"]
    assert (hami["driver"], hami["slices"], len(hami["devices"])) == (HAMI, 1, 2)
    assert hami["devices"][0] == {
        "name": "hami-gpu-0",
        "card": "nvidia/0",
        "classes": [HAMI],
        "shared": True,
        "capacity": {"cores": "100", "memory": "32Gi"},
    }
    assert ascend["classes"] == ["ascend.project-hami.io", "npu-910b3.project-hami.io"]


@pytest.mark.parametrize(
    ("profile", "flags", "gates"),
    [
        ("hami", {}, {"DRAConsumableCapacity"}),
        ("example", {}, {"DRAConsumableCapacity"}),
        ("nvidia", {}, set()),
        (
            "nvidia",
            {"nvidia_model": "A100-SXM4-80GB", "nvidia_mig": ""},
            {"DRAPartitionableDevices"},
        ),
    ],
)
def test_the_gates_are_those_that_the_devices_need(
    profile: str, flags: dict[str, Any], gates: set[str]
) -> None:
    found = {each["gate"] for each in with_dra(profile, **flags)["dra"]["gates"]}
    assert found & {"DRAConsumableCapacity", "DRAPartitionableDevices"} == gates
    assert {"DynamicResourceAllocation", "DRADeviceTaints", "ResourceHealthStatus"} <= found


def test_gates_are_told_for_the_kubelet_or_for_all() -> None:
    (shared,) = (
        each
        for each in with_dra("hami", (1, 35))["dra"]["gates"]
        if each["gate"] == "DRAConsumableCapacity"
    )
    assert shared["defaults"] == {"1.35": "off"}
    defaults = with_dra("hami")["dra"]["gates"][1]["defaults"]
    assert defaults == {"1.35": "off", "1.36": "on", "1.37": "on"}


def test_the_tables_of_dra_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hami_mock.kit.terminal.width", lambda: 80)
    lines = [*dra_lines(with_dra("hami")["dra"])]
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == [HAMI, "2", "1", "hami-gpu-0,", "hami-gpu-1"]
    assert "npu-910b3.project-hami.io            2" in lines
    assert any(line.startswith("DRAConsumableCapacity      off   on    on") for line in lines)
    assert "no resources" not in [*node_lines(with_dra("hami"))]


def test_many_devices_are_counted_and_the_first_named() -> None:
    told = with_dra("nvidia", nvidia_model="A100-SXM4-80GB", nvidia_mig="")["dra"]
    assert " and 49 more" in "\n".join(dra_lines(told))


def test_device_plugins_and_dra_together_are_warned_of() -> None:
    settings = load({"node-name": "node-a", "dra": "hami"})
    both = plan_data(settings, Plan(laid_out(), (1, 35)))
    assert both["dra"]["warnings"] == [f"{COUNTED_TWICE}: {COUNTED_TWICE_REMEDY}"]
    assert f"warning: {COUNTED_TWICE}: {COUNTED_TWICE_REMEDY}" in [*node_lines(both)]
    assert with_dra("hami")["dra"]["warnings"] == []


def test_cards_that_no_driver_has_are_not_offered_twice() -> None:
    settings = load({"node-name": "node-a", "dra": "hami"})
    plan = plan_data(settings, Plan(laid_out(nvidia_cards=0, ascend_cards=0), (1, 35)))
    (warning,) = plan["dra"]["warnings"]
    assert warning.startswith("--dra hami does nothing on this node: ")
    assert f"warning: {warning}" in [*node_lines(plan)]
