"""ResourceSlices: what the API server takes, what real drivers publish, and what a gate drops."""

from typing import Any

import pytest

from hami_mock.faults.actions import Action, perform
from hami_mock.kubelet import dra_gates
from hami_mock.vendors import VENDORS, Role, catalog
from hami_mock.vendors.dra import Profile, Version, driver_of
from hami_mock.views.dra import slices
from hami_mock.views.dra.slices import dropped, is_same
from tests.unit.builders import NODE
from tests.unit.views.dra.rig import EXAMPLE, HAMI, NVIDIA, devices, pool_of, specs, state_of
from tests.unit.views.dra.rules import check

ALL_CARDS = [
    pytest.param(vendor, model, id=f"{vendor.name}-{model}")
    for vendor in VENDORS
    for model in catalog.models()[vendor.maker]
]


@pytest.mark.parametrize(("vendor", "model"), ALL_CARDS)
def test_the_api_server_takes_every_card_in_every_profile(vendor: Any, model: str) -> None:
    none = {f"{each.prefix}_cards": 0 for each in VENDORS} | {"nvidia_model": "T4"}
    cards: dict[str, Any] = {f"{vendor.prefix}_cards": 3, f"{vendor.prefix}_model": model}
    if vendor.offers_role(Role.MEMORY):
        cards[f"{vendor.prefix}_memory_factor"] = 4
    mig: dict[str, str] = {}
    if vendor.cutting and vendor.cutting().profiles(catalog.models()[vendor.maker][model]):
        mig = {f"{vendor.prefix}_mig": ""}
    state = state_of(**{**none, **cards, **mig})
    perform(Action("fail", (f"{vendor.prefix}/1",)), state)
    perform(Action("lose", (f"{vendor.prefix}/2",)), state)
    for profile in Profile:
        if driver_of(vendor, profile):
            published = specs(pool_of(state, profile))
            assert published
            for spec in published:
                check(spec)


def test_a_card_of_hamis_driver() -> None:
    found = devices(pool_of(state_of(cards=1)))
    (uuid,) = (card.uuid for card in state_of(cards=1).node.cards)
    assert found == {
        "hami-gpu-0": {
            "name": "hami-gpu-0",
            "attributes": {
                "type": {"string": "hami-gpu"},
                "uuid": {"string": uuid},
                "minor": {"int": 0},
                "productName": {"string": "NVIDIA A100-SXM4-80GB"},
                "brand": {"string": "Nvidia"},
                "architecture": {"string": "Ampere"},
                "cudaComputeCapability": {"version": "8.0.0"},
                "driverVersion": {"version": "580.95.5"},
                "cudaDriverVersion": {"version": "13.0.0"},
                "pcieBusID": {"string": "0000:1b:00.0"},
                "resource.kubernetes.io/pcieRoot": {"string": "pci0000:1b"},
            },
            "capacity": {
                "cores": {
                    "value": "100",
                    "requestPolicy": {
                        "default": "100",
                        "validRange": {"min": "0", "max": "100", "step": "1"},
                    },
                },
                "memory": {
                    "value": "80Gi",
                    "requestPolicy": {
                        "default": "80Gi",
                        "validRange": {"min": "1Mi", "max": "80Gi", "step": "1Mi"},
                    },
                },
            },
            "allowMultipleAllocations": True,
        }
    }


def test_a_whole_card_of_nvidias_driver_needs_no_gate() -> None:
    (device,) = devices(pool_of(state_of(cards=1), NVIDIA)).values()
    assert device["name"] == "gpu-0"
    assert device["attributes"]["type"] == {"string": "gpu"}
    assert device["attributes"]["resource.kubernetes.io/pciBusID"] == {"string": "0000:1b:00.0"}
    assert device["capacity"] == {"memory": {"value": "80Gi"}}
    assert device.keys() == {"name", "attributes", "capacity"}


def test_a_card_in_mig_mode_is_offered_in_all_parts_that_it_could_have() -> None:
    pool = pool_of(state_of(cards=2, nvidia_mig=""), NVIDIA)
    counters, *rest = specs(pool)
    assert [each["name"] for each in counters["sharedCounters"]] == [
        "gpu-0-counter-set",
        "gpu-1-counter-set",
    ]
    assert len(rest) == 1
    found = devices(pool)
    assert "gpu-0" in found
    part = found["gpu-0-mig-3g40gb-9-4"]
    assert part["attributes"]["profile"] == {"string": "3g.40gb"}
    assert part["attributes"]["parentUUID"] == found["gpu-0"]["attributes"]["uuid"]
    (consumed,) = part["consumesCounters"]
    assert consumed["counterSet"] == "gpu-0-counter-set"
    assert {name for name in consumed["counters"] if "slice" in name} == {
        f"memory-slice-{unit}" for unit in (4, 5, 6, 7)
    }
    assert found["gpu-0-mig-1g10gb-me-20-0"]["attributes"]["profile"] == {"string": "1g.10gb+me"}


@pytest.mark.parametrize("model", ["A30", "A100-SXM4-40GB", "H100-SXM5-80GB", "B200"])
def test_no_two_parts_that_overlap_fit_the_counters(model: str) -> None:
    pool = pool_of(state_of(model, cards=1, nvidia_mig=""), NVIDIA)
    offered = [each for each in pool.devices.values() if each.device.place]
    (whole,) = (each.device.consumes for each in pool.devices.values() if each.device.is_whole)
    for one in offered:
        for other in offered:
            both = {
                name: one.device.consumes.get(name, 0) + other.device.consumes.get(name, 0)
                for name in whole
            }
            fits = all(both[name] <= most for name, most in whole.items())
            places = [each.device.place for each in (one, other)]
            units = [
                unit
                for place in places
                if place
                for unit in range(place.start, place.start + place.profile.units)
            ]
            assert not fits or len(units) == len({*units}), (one.device.name, other.device.name)


def test_as_many_parts_fit_the_counters_as_a_card_has_room_for() -> None:
    pool = pool_of(state_of("A100-SXM4-80GB", cards=1, nvidia_mig=""), NVIDIA)
    (whole,) = (each.device.consumes for each in pool.devices.values() if each.device.is_whole)
    chosen = ["gpu-0-mig-3g40gb-9-0", "gpu-0-mig-2g20gb-14-4", "gpu-0-mig-1g10gb-19-6"]
    used = {
        name: sum(pool.devices[each].device.consumes.get(name, 0) for each in chosen)
        for name in whole
    }
    assert all(used[name] <= most for name, most in whole.items())
    seven = [f"gpu-0-mig-1g10gb-19-{start}" for start in range(7)]
    assert all(
        sum(pool.devices[each].device.consumes.get(name, 0) for each in seven) <= most
        for name, most in whole.items()
    )


def test_a_card_that_was_cut_is_offered_as_it_is() -> None:
    found = devices(pool_of(state_of(cards=1, nvidia_mig="3g.40gb,2g.20gb"), NVIDIA))
    assert sorted(found) == ["gpu-0-mig-2g20gb-14-2", "gpu-0-mig-3g40gb-9-4"]
    part = found["gpu-0-mig-2g20gb-14-2"]
    assert part["attributes"]["uuid"]["string"].startswith("MIG-")
    assert part["capacity"]["memorySlice2"] == {"value": "1"}
    assert "consumesCounters" not in part


def test_cards_that_cant_be_cut_are_whole() -> None:
    assert [*devices(pool_of(state_of("T4", cards=1), NVIDIA))] == ["gpu-0"]


@pytest.mark.parametrize("plugins", ["on", "off"])
def test_ascends_chips_are_whole_or_shared_as_their_mode_says(plugins: str) -> None:
    chips: dict[str, Any] = {"nvidia_cards": 0, "ascend_cards": 1, "device_plugins": plugins}
    (whole,) = devices(pool_of(state_of(**chips))).values()
    assert whole["name"] == "npu-0-0"
    assert whole["attributes"]["type"] == {"string": "NPU"}
    assert whole["attributes"]["productName"] == {"string": "910B3"}
    assert whole["attributes"]["memory"] == {"int": 64}
    assert "capacity" not in whole
    (shared,) = devices(pool_of(state_of(**chips, ascend_mode="hami-core"))).values()
    assert shared["attributes"]["type"] == {"string": "HAMivNPUCore"}
    assert shared["allowMultipleAllocations"] is True
    assert shared["capacity"]["memory"]["value"] == "64Gi"


def test_cards_of_all_makers_have_names_of_their_own_in_the_example() -> None:
    state = state_of(mlu_cards=2, ascend_cards=1)
    found = devices(pool_of(state, EXAMPLE))
    assert len(found) == len(state.node.cards) == 5
    assert {"gpu-0", "gpu-1"} <= found.keys()
    fewer = devices(pool_of(state_of(cards=1, mlu_cards=2, ascend_cards=1), EXAMPLE))
    assert fewer.keys() < found.keys()


@pytest.mark.parametrize(
    ("action", "taint"),
    [
        (Action("fail", ("nvidia/0",), {"xid": 79}), {"key": "xid", "value": "79"}),
        (Action("fail", ("nvidia/0",)), {"key": "unhealthy"}),
        (Action("lose", ("nvidia/0",)), {"key": "gpu-lost"}),
    ],
)
def test_a_card_that_isnt_well_has_a_taint(action: Action, taint: dict[str, str]) -> None:
    state = state_of()
    perform(action, state)
    first, second = devices(pool_of(state, NVIDIA)).values()
    key = f"gpu.nvidia.com/{taint['key']}"
    assert first["taints"] == [{**taint, "key": key, "effect": "NoSchedule"}]
    assert "taints" not in second
    perform(Action("clear", ("nvidia/0",)), state)
    assert not any("taints" in each for each in devices(pool_of(state, NVIDIA)).values())


def test_a_degraded_card_has_none() -> None:
    state = state_of()
    perform(Action("degrade", ("nvidia/0",)), state)
    assert not any("taints" in each for each in devices(pool_of(state)).values())


def test_many_cards_need_many_slices() -> None:
    published = specs(pool_of(state_of(cards=128), HAMI))
    assert [len(each["devices"]) for each in published] == [64, 64]
    assert {each["pool"]["resourceSliceCount"] for each in published} == {2}


def test_a_cut_cards_devices_are_in_one_slice() -> None:
    published = specs(pool_of(state_of(cards=20, nvidia_mig=""), NVIDIA), generation=7)
    counters = [each["sharedCounters"] for each in published if "sharedCounters" in each]
    assert [len(each) for each in counters] == [8, 8, 4]
    for spec in published:
        check(spec)
        assert spec["pool"] == {
            "name": NODE,
            "generation": 7,
            "resourceSliceCount": len(published),
        }
    slice_of: dict[str, int] = {}
    for number, spec in enumerate(published):
        for device in spec.get("devices", []):
            parent = device["attributes"].get("parentUUID") or device["attributes"]["uuid"]
            assert slice_of.setdefault(parent["string"], number) == number


def dropping(spec: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {
        **{key: value for key, value in spec.items() if key not in keys},
        "devices": [
            {key: value for key, value in device.items() if key not in keys}
            for device in spec.get("devices", [])
        ],
    }


def test_a_field_that_is_gone_names_its_gate() -> None:
    state = state_of(cards=1)
    perform(Action("fail", ("nvidia/0",)), state)
    (spec,) = specs(pool_of(state))
    assert dropped(spec, spec) == set()
    assert dropped(spec, dropping(spec, "allowMultipleAllocations")) == {"DRAConsumableCapacity"}
    assert dropped(spec, dropping(spec, "taints")) == {"DRADeviceTaints"}
    counters, parts = specs(pool_of(state_of(cards=1, nvidia_mig=""), NVIDIA))
    assert dropped(counters, dropping(counters, "sharedCounters")) == {"DRAPartitionableDevices"}
    assert dropped(parts, dropping(parts, "consumesCounters")) == {"DRAPartitionableDevices"}


def test_without_counters_no_parts_are_offered() -> None:
    pool = pool_of(state_of(cards=1, nvidia_mig=""), NVIDIA)
    assert [*devices(pool, without={dra_gates.PARTITIONABLE})] == ["gpu-0"]


def test_without_taints_no_card_is_offered_that_isnt_well() -> None:
    state = state_of()
    perform(Action("fail", ("nvidia/0",)), state)
    assert [*devices(pool_of(state), without={dra_gates.TAINTS})] == ["hami-gpu-1"]


def test_what_the_server_adds_is_no_difference() -> None:
    state = state_of()
    perform(Action("fail", ("nvidia/0",)), state)
    pool = pool_of(state)
    (content,) = slices.contents(pool.driver, pool.devices.values())
    (spec,) = specs(pool)
    spec["devices"][0]["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z"
    assert is_same(content, spec)
    spec["devices"][1]["attributes"]["extra"] = {"bool": True}
    assert not is_same(content, spec)


def test_versions_are_three_numbers_without_leading_zeros() -> None:
    assert Version.of("580.95.05") == "580.95.5"
    assert Version.of("8.0") == "8.0.0"
    assert Version.of("") == "0.0.0"
