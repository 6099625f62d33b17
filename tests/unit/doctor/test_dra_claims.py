"""What the doctor finds in the ResourceClaims of a pod that waits."""

from typing import Any

from hami_mock.doctor.examine import examine_pod
from hami_mock.doctor.finding import Finding
from hami_mock.faults.actions import Action, perform
from tests.unit.builders import NODE
from tests.unit.doctor.dra_patients import (
    CLASSES,
    HAMI,
    MIG,
    NVIDIA,
    Document,
    claim,
    found,
    held,
    node,
    pod,
    pod_case,
    request,
    slices,
    template,
)
from tests.unit.doctor.patients import told
from tests.unit.views.dra import rig

WHERE = "claim default/mine"
PROFILE = f"device.attributes['{NVIDIA}'].profile == '{{}}'"


def examined(*documents: Document, own: Document | None = None, **more: Any) -> list[Finding]:
    return examine_pod(pod_case(own or pod(), found(*documents), node(), **more))


def unmet(*documents: Document, **asked: Any) -> Finding:
    """What is said of a claim that can't be met."""
    (finding,) = examined(claim(request(**asked)), *documents)
    assert told([finding]) == [("error", WHERE)]
    assert finding.what.startswith("request gpu: ")
    return finding


def test_a_claim_that_can_be_met_is_no_finding() -> None:
    assert examined(claim(request(memory="80Gi", cores="100")), *slices()) == []
    assert examined(claim(request(count=2)), *slices()) == []
    assert examined(claim(request(allocationMode="All")), *slices()) == []


def test_a_claim_that_is_not_there() -> None:
    (finding,) = examined(*slices())
    assert told([finding]) == [("error", WHERE)]
    assert "there is no such ResourceClaim" in finding.what


def test_a_template_that_is_not_there() -> None:
    own = pod(of_template="parts")
    (finding,) = examined(template(name="part"), *slices(), own=own)
    assert told([finding]) == [("error", "template default/parts")]
    assert finding.what.endswith("did you mean default/part?")


def test_a_template_of_which_no_claim_was_made_yet() -> None:
    own = pod(of_template="part")
    waiting, unmet = examined(template(request(memory="100Gi")), *slices(), own=own)
    assert told([waiting, unmet]) == [
        ("note", "template default/part"),
        ("error", "template default/part"),
    ]
    assert "has 80Gi memory" in unmet.what


def test_the_claim_that_was_made_from_a_template_is_read() -> None:
    made = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "waiting-gpu-x"}]}
    own = pod(of_template="part", status=made)
    (finding,) = examined(claim(request(memory="100Gi"), name="waiting-gpu-x"), *slices(), own=own)
    assert told([finding]) == [("error", "claim default/waiting-gpu-x")]
    (finding,) = examined(*slices(), own=own)
    assert "no longer exists" in finding.what


def test_a_pod_that_needs_no_claim_of_its_template() -> None:
    own = pod(of_template="part", status={"resourceClaimStatuses": [{"name": "gpu"}]})
    assert examined(*slices(), own=own) == []


def test_a_class_that_is_not_there() -> None:
    finding = unmet(*slices(), cls="hami-core-gpu.project-hami")
    assert "there is no DeviceClass 'hami-core-gpu.project-hami'" in finding.what
    assert f"did you mean {HAMI}?" in finding.what
    assert HAMI in finding.advice


def test_more_than_any_card_has_names_the_largest() -> None:
    state = rig.state_of(cards=1)
    finding = unmet(*slices(state), memory="100Gi", cores="30")
    assert finding.what == (
        "request gpu: it asks for 100Gi memory and 30 cores; the largest device, hami-gpu-0 "
        f"on {NODE}, has 80Gi memory"
    )
    assert "the largest device" in finding.advice


def test_a_capacity_that_no_device_has() -> None:
    finding = unmet(*slices(profile=rig.NVIDIA), cls=NVIDIA, capacity={"requests": {"cores": "30"}})
    assert "no device has the capacity cores" in finding.what


def test_what_others_have_is_told_with_their_names() -> None:
    finding = unmet(
        held("hami-gpu-0", "a", memory="30Gi", cores="30"),
        held("hami-gpu-0", "b", memory="30Gi", cores="30"),
        held("hami-gpu-1", "c", memory="60Gi", cores="30"),
        *slices(),
        memory="30Gi",
        cores="30",
    )
    assert f"hami-gpu-0 on {NODE} has 20Gi of 80Gi memory free (claim default/a has 30Gi, claim " \
        "default/b has 30Gi)" in finding.what  # fmt: skip
    assert f"hami-gpu-1 on {NODE} has 20Gi of 80Gi memory free (claim default/c" in finding.what


def test_cores_can_be_what_is_short() -> None:
    others = [held(f"hami-gpu-{i}", f"h{i}", memory="1Gi", cores="80") for i in range(2)]
    finding = unmet(*others, *slices(), memory="30Gi", cores="30")
    assert "has 20 of 100 cores free" in finding.what


def test_who_does_not_say_how_much_wants_all() -> None:
    others = [held(f"hami-gpu-{i}", f"h{i}", memory="1Gi", cores="1") for i in range(2)]
    what = unmet(*others, *slices()).what
    assert "it asks for a whole device (it names no amount), which isn't free now" in what


def test_a_part_is_rounded_up_to_what_the_device_gives() -> None:
    # The example driver gives whole GiB.
    others = [
        held(f"gpu-{i}", f"h{i}", "gpu.example.com", memory="80384Mi", compute="1") for i in (0, 1)
    ]
    asks: dict[str, Any] = {
        "cls": "gpu.example.com",
        "capacity": {"requests": {"memory": "1025Mi", "compute": "1"}},
    }
    assert "1536Mi of 80Gi memory free" in unmet(*others, *slices(profile=rig.EXAMPLE), **asks).what
    asks["capacity"] = {"requests": {"memory": "1000Mi", "compute": "1"}}
    assert examined(claim(request(**asks)), *others, *slices(profile=rig.EXAMPLE)) == []


def test_a_whole_card_belongs_to_one_claim() -> None:
    made = slices(rig.state_of(cards=1), rig.NVIDIA)
    finding = unmet(held("gpu-0", "a", NVIDIA), *made, cls=NVIDIA)
    assert f"gpu-0 on {NODE} belongs to claim default/a" in finding.what
    assert (
        examined(claim(request(NVIDIA, adminAccess=True)), held("gpu-0", "a", NVIDIA), *made) == []
    )


def test_who_only_looks_at_a_card_takes_nothing_of_it() -> None:
    looking = held("gpu-0", "a", NVIDIA)
    looking["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
    made = slices(rig.state_of(cards=1), rig.NVIDIA)
    assert examined(claim(request(NVIDIA)), looking, *made) == []


def test_devices_that_every_node_reaches_count_on_each() -> None:
    everywhere = slices(node="")
    everywhere[0]["spec"]["pool"]["name"] = "fabric"
    assert examined(claim(request(count=4)), *slices(), *everywhere) == []
    assert "at most 4 that fit" in unmet(*slices(), *everywhere, count=5).what


def test_tainted_devices_are_named_unless_they_are_tolerated() -> None:
    state = rig.state_of()
    perform(Action("fail", ("nvidia",), {"xid": 79}), state)
    finding = unmet(*slices(state), memory="1Gi", cores="1")
    assert f"hami-gpu-0 on {NODE} is tainted: {HAMI}/xid=79" in finding.what
    tolerations = [{"key": f"{HAMI}/xid", "operator": "Exists", "effect": "NoSchedule"}]
    tolerant = request(memory="1Gi", cores="1", tolerations=tolerations)
    assert examined(claim(tolerant), *slices(state)) == []
    for wrong in ({"key": "other", "operator": "Exists"}, {"key": f"{HAMI}/xid", "value": "31"}):
        tolerant = request(memory="1Gi", cores="1", tolerations=[wrong])
        assert len(examined(claim(tolerant), *slices(state))) == 1


def test_counters_that_are_exhausted() -> None:
    made = slices(rig.state_of(cards=1, nvidia_mig=""), rig.NVIDIA)
    names = [each["name"] for one in made for each in one["spec"].get("devices", ())]
    (seven,) = (name for name in names if "-mig-7g" in name)
    wanted = {"cls": MIG, "selector": PROFILE.format("1g.10gb")}
    assert examined(claim(request(**wanted)), *made) == []
    finding = unmet(held(seven, "a", NVIDIA), *made, **wanted)
    assert "gpu-0-counter-set has too little of" in finding.what
    assert "(claim default/a)" in finding.what
    assert "smaller profile" in finding.advice


def test_claims_that_share_a_part_of_a_card_take_its_counters_once() -> None:
    """As of dra-example-driver, with partitions that several claims may have."""
    (one,) = slices(rig.state_of(cards=1), rig.EXAMPLE)
    spec, driver = one["spec"], "gpu.example.com"
    (card,) = spec.pop("devices")
    spec["pool"]["resourceSliceCount"] = 2
    half, all_of_it = ({"memory": {"value": amount}} for amount in ("40Gi", "80Gi"))
    takes = [{"counterSet": "all", "counters": half}]
    of_card = {**card, "capacity": half, "consumesCounters": takes}
    halves = [{**of_card, "name": f"half-{number}"} for number in range(2)]
    counters = {**one, "spec": {**spec, "sharedCounters": [{"name": "all", "counters": all_of_it}]}}
    parts = {**one, "spec": {**spec, "devices": halves}}
    two = [held("half-0", name, driver, memory="10Gi") for name in ("a", "b")]
    for wanted in ("20Gi", "40Gi"):
        assert examined(claim(request(driver, memory=wanted)), *two, counters, parts) == []
    full = held("half-1", "c", driver, memory="40Gi")
    assert examined(claim(request(driver, memory="20Gi")), *two, full, counters, parts) == []
    finding = unmet(*two, full, counters, parts, cls=driver, memory="40Gi")
    assert "half-0 on node-a has 20Gi of 40Gi memory free" in finding.what


def test_no_device_is_what_the_selector_wants() -> None:
    made = slices(rig.state_of(cards=1, nvidia_mig=""), rig.NVIDIA)
    finding = unmet(*made, cls=MIG, selector=PROFILE.format("9g.90gb"))
    assert "of its class matches its selector: device.attributes" in finding.what


def test_no_device_is_of_the_class() -> None:
    finding = unmet(*slices(), cls="ascend.project-hami.io")
    assert finding.what == (
        f"request gpu: none of 2 devices ({HAMI}) belongs to the DeviceClass ascend.project-hami.io"
    )


def test_there_are_no_devices_at_all() -> None:
    assert f"there are no devices on node {NODE}" in unmet().what
    assert (
        "there are no devices on any node"
        in examine_pod(pod_case(pod(), found(claim(request())), elsewhere=2))[0].what
    )


def test_slices_of_another_node_or_of_a_pool_that_is_not_whole_are_no_help() -> None:
    assert "there are no devices" in unmet(*slices(node="other")).what
    assert "there are no devices" in unmet(*slices(rig.state_of(cards=70))[:1]).what


def test_more_devices_than_one_node_has() -> None:
    finding = unmet(*slices(), count=3)
    assert "it asks for 3 devices, and a node has at most 2 that fit" in finding.what
    more = [*slices(), *slices(node="other")]
    findings = examine_pod(pod_case(pod(), found(claim(request(count=3)), *more), elsewhere=2))
    assert "at most 2 that fit" in findings[0].what


def test_fewer_fit_than_are_asked_for_because_somebody_has_one() -> None:
    finding = unmet(held("hami-gpu-1", "a", memory="1Gi", cores="1"), *slices(), count=2)
    assert "at most 1 that fit; " in finding.what
    assert "99 of 100 cores free (claim default/a has 1)" in finding.what


def test_one_of_several_ways_is_enough() -> None:
    big = {"deviceClassName": HAMI, "name": "big", "capacity": {"requests": {"memory": "100Gi"}}}
    small = {**big, "name": "small", "capacity": {"requests": {"memory": "10Gi"}}}
    first = {"name": "gpu", "firstAvailable": [big, small]}
    assert examined(claim(first), *slices()) == []
    (finding,) = examined(claim({**first, "firstAvailable": [big, big]}), *slices())
    assert finding.what.count("100Gi memory") == 2


def test_an_expression_that_is_not_evaluated_is_a_note() -> None:
    odd = f"device.attributes['{HAMI}'].productName.startsWith('A100')"
    (finding,) = examined(claim(request(selector=odd)), *slices())
    assert told([finding]) == [("note", WHERE)]
    assert "can't evaluate all of device.attributes" in finding.what


def test_what_could_not_be_read_is_one_note() -> None:
    why = "the API server has no resource.k8s.io/v1"
    dra = found(lacks=dict.fromkeys(("resourceslices", "resourceclaims", "deviceclasses"), why))
    findings = examine_pod(pod_case(pod(), dra, node()))
    (finding,) = (each for each in findings if each.where == "DRA")
    assert (finding.severity, finding.what.count(why)) == ("note", 1)


def test_a_pod_that_runs_has_what_it_wants() -> None:
    own = pod(status={"phase": "Running"})
    assert examined(claim(request(memory="100Gi")), *slices(), own=own) == []


def extended(count: str = "1", name: str = "nvidia.com/gpu") -> Document:
    made = pod()
    del made["spec"]["resourceClaims"]
    made["spec"]["containers"] = [{"name": "c0", "resources": {"limits": {name: count}}}]
    return made


def test_a_resource_that_a_class_offers_is_not_missing() -> None:
    assert examined(*slices(), own=extended()) == []
    implicit = extended(name=f"deviceclass.resource.kubernetes.io/{HAMI}")
    assert examined(*slices(), own=implicit) == []
    (finding,) = examined(*slices(), own=extended("3"))
    assert told([finding]) == [("error", f"nvidia.com/gpu (by DeviceClass {HAMI})")]
    assert "at most 2 that fit" in finding.what


def test_a_resource_of_a_device_plugin_is_not_dras() -> None:
    on = node(resources={"nvidia.com/gpu": "2"})
    findings = examine_pod(pod_case(extended("3"), found(*slices()), on))
    assert "by DeviceClass" not in "".join(each.where for each in findings)
    assert ("error", "nvidia.com/gpu") in told(findings)


def test_without_the_class_the_node_lacks_the_resource() -> None:
    plain = [{**each, "spec": {**each["spec"], "extendedResourceName": None}} for each in CLASSES]
    findings = examine_pod(pod_case(extended(), found(*slices(), classes=plain), node()))
    assert ("error", "nvidia.com/gpu") in told(findings)


def test_the_schedulers_own_words_come_with_their_meaning() -> None:
    message = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    own = pod(status={"conditions": [condition]})
    findings = examined(claim(request(memory="100Gi")), *slices(), own=own)
    assert told(findings)[1:] == [
        ("error", "scheduler: cannot allocate all claims"),
        ("error", WHERE),
    ]
