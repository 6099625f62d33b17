"""What the doctor finds in a node's ResourceSlices."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from hami_mock.doctor.examine import examine_node
from hami_mock.doctor.finding import Finding
from hami_mock.faults.actions import Action, perform
from hami_mock.node.advice import COUNTED_TWICE, COUNTED_TWICE_REMEDY
from hami_mock.vendors.dra import Profile
from tests.unit.builders import NODE
from tests.unit.doctor.dra_patients import (
    CLASSES,
    HAMI,
    NVIDIA,
    Document,
    agent,
    found,
    node,
    node_case,
    slices,
)
from tests.unit.doctor.patients import told
from tests.unit.views.dra import rig

LACKS = {"resourceslices": "can't list resourceslices (403); the role needs the verb list"}


def examined(*documents: Document, pods: tuple[Document, ...] = ()) -> list[Finding]:
    return examine_node(node_case(found(*documents), *pods))


def only(findings: list[Finding], severity: str) -> Finding:
    (finding,) = findings
    assert finding.severity == severity
    return finding


def test_a_driver_that_is_well_is_one_line() -> None:
    findings = examined(*slices(), pods=(agent(DRA="hami"),))
    finding = only(findings, "ok")
    assert (finding.where, finding.what) == (HAMI, "2 devices in 1 ResourceSlice")


def test_two_slices_are_counted() -> None:
    finding = only(examined(*slices(rig.state_of(cards=70))), "ok")
    assert finding.what == "70 devices in 2 ResourceSlices"


def test_slices_of_other_nodes_are_none_of_this_one() -> None:
    findings = examined(*slices(node="other"))
    assert told(findings) == [("warning", f"node {NODE}")]


def test_what_could_not_be_looked_at_is_a_note_that_names_the_verb() -> None:
    case = node_case(found(lacks=LACKS), agent(DRA="hami"))
    finding = next(each for each in examine_node(case) if each.where == "DRA")
    assert finding.severity == "note"
    assert "the role needs the verb list" in finding.what
    assert "resourceslices" in finding.advice


@pytest.mark.parametrize("is_partial", [False, True])
@pytest.mark.parametrize(("pods", "notes"), [((), 0), ((agent(DRA="hami"),), 1)])
def test_slices_that_nobody_could_read_are_a_note_where_there_should_be_some(
    pods: tuple[Document, ...], notes: int, is_partial: bool
) -> None:
    case = node_case(found(lacks=LACKS, is_partial=is_partial), *pods)
    assert sum(each.where == "DRA" for each in examine_node(case)) == notes


@pytest.mark.parametrize("profile", ["hami", "nvidia", "example"])
def test_an_agent_with_dra_and_no_slices_is_an_error(profile: str) -> None:
    findings = examined(pods=(agent(DRA=profile),))
    finding = next(each for each in findings if each.where == "ResourceSlices")
    assert finding.severity == "error"
    assert f"pod kube-system/agent has DRA on ({profile})" in finding.what
    assert "kubectl exec -n kube-system agent -- hami-mock ctl status" in finding.advice


def test_the_flag_of_the_command_counts_too_and_before_the_variable() -> None:
    own = agent(DRA="hami")
    own["metadata"]["labels"] = {"app.kubernetes.io/name": "hami-mock"}
    for args in (["run", "--dra=nvidia"], ["run", "--dra", "nvidia"]):
        own["spec"]["containers"][0]["args"] = args
        (finding,) = (each for each in examined(pods=(own,)) if each.where == "ResourceSlices")
        assert "(nvidia)" in finding.what


@pytest.mark.parametrize(
    "own", [agent(), agent(DRA=""), agent("other", DRA="hami"), agent(DRA="nonsense")]
)
def test_without_dra_no_slice_is_missing(own: Document) -> None:
    assert "ResourceSlices" not in [each.where for each in examined(pods=(own,))]


def test_slices_of_another_profile_are_not_those() -> None:
    findings = examined(*slices(), pods=(agent(DRA="nvidia"),))
    assert ("error", "ResourceSlices") in told(findings)


def test_a_pool_with_a_slice_too_few_is_not_whole() -> None:
    finding = only(examined(*slices(rig.state_of(cards=70))[:1]), "error")
    assert finding.where == HAMI
    assert "1 of 2 slices have its newest generation 1" in finding.what


def test_a_pool_that_is_half_rewritten_is_not_whole() -> None:
    old, new = slices(rig.state_of(cards=70)), slices(rig.state_of(cards=70), generation=2)
    finding = only(examined(old[0], new[1]), "error")
    assert "1 of an older generation are ignored" in finding.what


def test_slices_of_an_older_generation_are_left_over() -> None:
    finding = only(examined(*slices(), *slices(generation=7)), "warning")
    assert "different generations: 1 of the newest (7); 1 of an older" in finding.what


def test_a_card_of_two_drivers_is_counted_double() -> None:
    state = rig.state_of(cards=1)
    findings = examined(*slices(state), *slices(state, rig.EXAMPLE))
    finding = only(findings, "warning")
    assert state.node.cards[0].uuid in finding.what
    assert f"hami-gpu-0 of {HAMI} and gpu-0 of gpu.example.com" in finding.what


def test_device_plugins_beside_dra_are_a_warning() -> None:
    on = node(resources={"nvidia.com/gpu": "20"})
    findings = examine_node(node_case(found(*slices()), on=on))
    (finding,) = (each for each in findings if COUNTED_TWICE in each.what)
    assert (finding.severity, finding.where) == ("warning", HAMI)
    assert "20 nvidia.com/gpu" in finding.what
    assert finding.advice == COUNTED_TWICE_REMEDY


def test_a_plugin_of_another_maker_offers_other_cards() -> None:
    on = node(resources={"cambricon.com/vmlu": "20"})
    findings = examine_node(node_case(found(*slices()), on=on))
    assert not any(COUNTED_TWICE in each.what for each in findings)


def test_the_gate_of_shared_cards_is_seen_by_what_is_missing() -> None:
    made = slices()
    for device in made[0]["spec"]["devices"]:
        del device["allowMultipleAllocations"]
    finding = only(examined(*made), "warning")
    assert finding.where == HAMI
    assert finding.what == (
        "the feature gate DRAConsumableCapacity is off (hami-gpu-0, hami-gpu-1 came without "
        "allowMultipleAllocations): claims get whole cards, not parts of them"
    )
    for component in ("API server", "controller manager", "scheduler", "kubelet"):
        assert component in finding.advice


def test_the_gate_of_counters_is_seen_by_what_is_missing() -> None:
    state = rig.state_of(nvidia_mig="")
    made = slices(state, rig.NVIDIA, without={"DRAPartitionableDevices"})
    finding = only(examined(*made, pods=(agent(DRA="nvidia"),)), "warning")
    assert (finding.where, "DRAPartitionableDevices is off" in finding.what) == (NVIDIA, True)


@pytest.mark.parametrize(
    ("profile", "flags"),
    [
        (rig.HAMI, {"nvidia_cards": 0, "ascend_cards": 1}),
        (rig.HAMI, {"nvidia_cards": 0, "ascend_cards": 1, "ascend_mode": "hami-core"}),
        (rig.NVIDIA, {}),
        (rig.NVIDIA, {"nvidia_mig": ""}),
        (rig.NVIDIA, {"nvidia_mig": "3g.40gb,2g.20gb"}),
        (rig.EXAMPLE, {}),
    ],
)
def test_with_all_gates_on_every_driver_is_well(profile: Profile, flags: dict[str, Any]) -> None:
    made = slices(rig.state_of(**flags), profile)
    finding = only(examined(*made, pods=(agent(DRA=profile),)), "ok")
    assert finding.where == made[0]["spec"]["driver"]


def test_a_chip_of_ascends_that_should_be_shared_and_is_not() -> None:
    made = slices(rig.state_of(nvidia_cards=0, ascend_cards=1, ascend_mode="hami-core"))
    del made[0]["spec"]["devices"][0]["allowMultipleAllocations"]
    assert "DRAConsumableCapacity" in only(examined(*made), "warning").what


def test_a_real_example_driver_shares_nothing_and_that_is_right() -> None:
    made = slices(profile=rig.EXAMPLE)
    for device in made[0]["spec"]["devices"]:
        del device["allowMultipleAllocations"]
    only(examined(*made), "ok")
    ours = examined(*made, pods=(agent(DRA="example"),))
    assert "DRAConsumableCapacity" in only(ours, "warning").what


def without_names(is_applied: bool) -> list[Document]:
    """The classes of the manifests where DRAExtendedResource is off."""
    made = deepcopy(CLASSES)
    for each in made:
        if is_applied:
            applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(each)}
            each["metadata"]["annotations"] = applied
        each["spec"].pop("extendedResourceName", None)
    return made


def test_the_gate_of_extended_resources_is_seen_by_what_was_applied() -> None:
    classes = without_names(is_applied=True)
    finding = only(examine_node(node_case(found(*slices(), classes=classes))), "warning")
    assert (finding.where, finding.what) == (
        HAMI,
        f"the feature gate DRAExtendedResource is off (DeviceClass {HAMI} came without its "
        "extendedResourceName): a pod needs a claim to get a card",
    )
    assert finding.advice.endswith(" and the kubelet, and apply the DeviceClasses again")
    # On a release that can't be without the gate, somebody took the name away.
    on = node()
    on["status"]["nodeInfo"] = {"kubeletVersion": "v1.37.1"}
    only(examine_node(node_case(found(*slices(), classes=classes), on=on)), "ok")
    # So did who gave it to another class, as docs/dra.md says.
    moved = deepcopy(classes)
    for each in moved:
        if each["metadata"]["name"] == NVIDIA:
            each["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    only(examine_node(node_case(found(*slices(), classes=moved))), "ok")
    # Of a driver whose classes never had a name nothing was lost.
    chips = slices(rig.state_of(nvidia_cards=0, ascend_cards=1))
    only(examine_node(node_case(found(*chips, classes=classes))), "ok")


@pytest.mark.parametrize(
    ("version", "notes"), [("v1.35.8", 1), ("v1.36.4", 1), ("v1.37.1", 0), ("", 0)]
)
def test_where_nobody_knows_what_was_applied_the_gate_is_a_note(version: str, notes: int) -> None:
    on = node()
    on["status"]["nodeInfo"] = {"kubeletVersion": version}
    classes = without_names(is_applied=False)
    findings = examine_node(node_case(found(*slices(), classes=classes), on=on))
    assert [str(each.severity) for each in findings] == ["note"] * notes + ["ok"]
    assert all("DRAExtendedResource is off, or no class" in each.what for each in findings[:notes])
    # Classes of somebody else's have what they should.
    for each in classes:
        del each["metadata"]["labels"]
    only(examine_node(node_case(found(*slices(), classes=classes), on=on)), "ok")


@pytest.mark.parametrize("text", ["[", "[]", "7", '{"spec": 5}', "[" * 100_000])
def test_what_was_applied_may_be_anything(text: str) -> None:
    classes = without_names(is_applied=False)
    for each in classes:
        applied = {"kubectl.kubernetes.io/last-applied-configuration": text}
        each["metadata"]["annotations"] = applied
    findings = examine_node(node_case(found(*slices(), classes=classes)))
    assert not any(each.severity == "warning" for each in findings)


def test_the_agent_knows_of_a_gate_that_slices_do_not_show() -> None:
    case = node_case(found(*slices()))
    findings = examine_node(replace(case, gates_off={HAMI: ["DRADeviceTaints"]}))
    finding = only(findings, "warning")
    assert "DRADeviceTaints is off (as its agent says): cards that are unhealthy" in finding.what


def test_a_card_that_fails_is_named_with_its_taint() -> None:
    state = rig.state_of()
    perform(Action("fail", ("nvidia/1",), {"xid": 79}), state)
    finding = only(examined(*slices(state)), "warning")
    assert f"hami-gpu-1 is tainted: {HAMI}/xid=79 (NoSchedule)" in finding.what


def test_a_taint_that_keeps_nobody_away_is_no_finding() -> None:
    """NVIDIA's driver has one for cards whose health it can't watch."""
    (made,) = slices()
    made["spec"]["devices"][0]["taints"] = [{"key": f"{NVIDIA}/unmonitored", "effect": "None"}]
    only(examined(made), "ok")


def test_devices_of_no_class_can_be_claimed_by_nobody() -> None:
    findings = examine_node(node_case(found(*slices(), classes=())))
    assert "no DeviceClass is for its devices" in only(findings, "warning").what
    # Who may not list classes knows nothing of them.
    only(examine_node(node_case(found(*slices(), classes=None))), "ok")


def test_a_pod_with_an_extended_resource_by_dra_is_no_sign_of_a_plugin() -> None:
    holder = agent()
    holder["spec"]["containers"] = [
        {"name": "c0", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    ]
    only(examined(*slices(), pods=(holder,)), "ok")
    # A kubelet that had a plugin once keeps its name with a 0. The agent's own role may not list
    # classes, but the pod's status knows how it got its card.
    on, unknown = node(resources={"nvidia.com/gpu": "0"}), found(*slices(), classes=None)
    assert ("error", "nvidia.com/gpu") in told(examine_node(node_case(unknown, holder, on=on)))
    mapping = {"containerName": "c0", "resourceName": "nvidia.com/gpu", "requestName": "c"}
    holder["status"]["extendedResourceClaimStatus"] = {"requestMappings": [mapping]}
    findings = examine_node(node_case(unknown, holder, on=on))
    assert {str(each.severity) for each in findings} == {"ok", "note"}
