import json
from dataclasses import replace

import pytest

from hami_mock.hami.kinds import ReportStyle
from hami_mock.hami.register import decode
from hami_mock.node.cards import CardGroup, make_cards
from hami_mock.node.fault import Fault
from hami_mock.node.fault_kinds import DEGRADED, LOST, UNHEALTHY
from hami_mock.vendors import catalog
from hami_mock.vendors.hami_vendor import HamiVendor
from hami_mock.vendors.scheduling import AllowedProfiles, PluginConfig
from hami_mock.views.hami.registration import Registration, registration
from tests.makers import BY_WORD
from tests.unit.builders import NODE, group
from tests.unit.views.hami.rig import (
    ASCEND_910B3,
    MR_V100,
    cards_of,
    count_resource,
    nvidia_cards,
    state_with,
)

REGISTER = BY_WORD["NVIDIA"].node.register
SCORE = "hami.io/node-nvidia-score"


def of_model(name: str, count: int = 2) -> CardGroup:
    model = catalog.find("nvidia", name)
    assert model is not None
    return CardGroup(model, model.memory, (None,) * count)


def test_nvidias_cards_with_scaling_numa_and_scores() -> None:
    cards = nvidia_cards(group(numa=(0, 1), links=[frozenset({0, 1})]))
    resource = count_resource(
        cards=cards,
        split=7,
        memory_scaling=1.5,
        core_scaling=1.15,
        mode="hami-core",
        has_scores=True,
    )
    found = registration(state_with(resource))
    assert json.loads(found.annotations[REGISTER]) == [
        {
            "id": cards[0].uuid,
            "count": 7,
            "devmem": 49152,
            "devcore": 115,
            "type": "NVIDIA-Tesla V100-SXM2-32GB",
            "mode": "hami-core",
            "health": True,
        },
        {
            "id": cards[1].uuid,
            "index": 1,
            "count": 7,
            "devmem": 49152,
            "devcore": 115,
            "type": "NVIDIA-Tesla V100-SXM2-32GB",
            "numa": 1,
            "mode": "hami-core",
            "health": True,
        },
    ]
    assert json.loads(found.annotations[SCORE])[0]["score"] == {cards[1].uuid: 210}
    assert found.handshakes == {"hami.io/node-handshake": None}


def test_unhealthy_cards_show_lost_ones_do_not_and_degraded_ones_are_healthy() -> None:
    resource = count_resource(cards=nvidia_cards(group(numa=(None,) * 3)), has_scores=True)
    state = state_with(resource)
    failed, lost, degraded = (card.uuid for card in resource.cards)
    state.begin_faults(
        Fault(UNHEALTHY, frozenset({failed})),
        Fault(LOST, frozenset({lost})),
        Fault(DEGRADED, frozenset({degraded})),
    )
    found = registration(state)
    health = {device.id: device.healthy for device in decode(found.annotations[REGISTER])}
    assert health == {failed: False, degraded: True}
    assert lost not in found.annotations[SCORE]
    state.begin_faults(Fault(LOST, frozenset({failed, degraded})))
    assert registration(state) == Registration()


def test_scores_are_only_written_if_they_are_wanted() -> None:
    found = registration(state_with(count_resource()))
    assert REGISTER in found.annotations
    assert SCORE not in found.annotations


def test_ascend_is_registered_with_what_hamis_configuration_says() -> None:
    chip = replace(ASCEND_910B3, memory=60000, cores=24)
    found = registration(state_with(count_resource(chip, memory_scaling=1.5)))
    (row, _) = json.loads(found.annotations["hami.io/node-register-Ascend910B3"])
    assert (row["devmem"], row["devcore"]) == (90000, 24)
    smaller = make_cards(NODE, chip.vendor, [group(chip.vendor, memory=1000)])
    found = registration(state_with(count_resource(chip, smaller)))
    (row, _) = json.loads(found.annotations["hami.io/node-register-Ascend910B3"])
    assert row["devmem"] == 1000, "whoever gives cards other memory means it"


def test_ascends_plugin_numbers_the_cards_that_it_registers() -> None:
    """Also for the ring that a card is in it counts only those: the first four are in one."""
    resource = count_resource(ASCEND_910B3, cards_of(ASCEND_910B3.vendor, 7)[1:])
    state = state_with(resource)
    state.begin_faults(Fault(LOST, frozenset({resource.cards[0].uuid})))
    told = registration(state).annotations["hami.io/node-register-Ascend910B3"]
    assert [
        (row["id"], row.get("index", 0), row["custominfo"]["NetworkID"]) for row in json.loads(told)
    ] == [(card.uuid, i, int(i >= 4)) for i, card in enumerate(resource.cards[1:])]


def test_amds_cards_have_their_compute_units_and_their_place() -> None:
    found = registration(state_with(count_resource(BY_WORD["AMD"])))
    (_, row) = json.loads(found.annotations["hami.io/node-amd-register"])
    assert (row["devcore"], row["type"]) == (304, "AMD Instinct MI300X")
    assert row["custominfo"] == {"pciBDF": "000d:1c:00.0"}


def test_hygons_plugin_has_a_word_of_its_own_for_the_mode() -> None:
    found = registration(state_with(count_resource(BY_WORD["DCU"], split=4)))
    first, second, _ = found.annotations["hami.io/node-dcu-register"].split(":")
    assert first.endswith(",4,65520,100,DCU-K100_AI,0,true,0,hami")
    assert second.endswith(",4,65520,100,DCU-K100_AI,0,true,1,hami")


def test_each_vendor_has_its_own_encoding() -> None:
    iluvatar, ascend = count_resource(MR_V100), count_resource(ASCEND_910B3, split=4)
    found = registration(state_with(iluvatar, ascend, count_resource(BY_WORD["MLU"])))
    first = iluvatar.cards[0]
    assert found.annotations["hami.io/node-MR-V100-register"].startswith(
        f"{first.uuid},10,{first.memory},100,MR-V100,0,true,0,:"
    )
    (row, _) = json.loads(found.annotations["hami.io/node-register-Ascend910B3"])
    # The chip's cores, and no mode: that is the node's.
    assert (row["devcore"], row["type"], row["count"]) == (20, "Ascend910B3", 4)
    assert "mode" not in row
    assert found.annotations["hami-vnpu-core"] == "false"
    assert found.handshakes == {
        "hami.io/node-handshake-MR-V100": ReportStyle.DOTTED,
        "hami.io/node-handshake-Ascend910B3": ReportStyle.DOTTED,
    }
    assert len(found.annotations) == 3  # HAMi reckons Cambricon's cards from the capacity


def test_ascend_sliced_by_hamis_library_counts_percent() -> None:
    found = registration(state_with(count_resource(ASCEND_910B3, mode="hami-core")))
    (row, _) = json.loads(found.annotations["hami.io/node-register-Ascend910B3"])
    assert row["devcore"] == 100
    assert found.annotations["hami-vnpu-core"] == "true"


def test_cards_in_instances_say_what_they_can_be_cut_into() -> None:
    cards = nvidia_cards(of_model("A100-SXM4-40GB"))
    resource = count_resource(cards=cards, split=10, mode="mig")
    (first, _) = decode(registration(state_with(resource)).annotations[REGISTER])
    assert (first.count, first.memory, first.cores, first.mode) == (7, 40960, 100, "mig")
    assert [profile.name for profile in first.mig_profiles] == [
        "1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb",
    ]  # fmt: skip


def test_what_hamis_configuration_allows_is_registered() -> None:
    plugin = PluginConfig(allowed=(AllowedProfiles(("A100",), ("1g.5gb",)),))
    cards = nvidia_cards(of_model("A100-SXM4-40GB"))
    resource = count_resource(cards=cards, mode="mig", plugin=plugin)
    (first, _) = decode(registration(state_with(resource)).annotations[REGISTER])
    assert [(each.name, len(each.placements)) for each in first.mig_profiles] == [("1g.5gb", 7)]
    others = count_resource(cards=nvidia_cards(of_model("H20")), mode="mig", plugin=plugin)
    assert registration(state_with(others)) == Registration()


def test_cards_that_can_not_be_cut_are_not_registered_as_such() -> None:
    resource = count_resource(cards=nvidia_cards(of_model("T4")), mode="mig")
    assert registration(state_with(resource)) == Registration()


def test_resources_without_a_side_for_hami_are_none_of_its_business() -> None:
    assert registration(state_with(replace(count_resource(), hami=None))) == Registration()
    assert registration(state_with()) == Registration()


@pytest.mark.parametrize("vendor", BY_WORD.values(), ids=lambda vendor: vendor.word)
def test_the_scheduler_can_read_the_cards_of_every_vendor(vendor: HamiVendor) -> None:
    found = registration(state_with(count_resource(vendor)))
    if vendor.node.encoding is None:
        assert not found.annotations
    else:
        devices = decode(found.annotations[vendor.node.register], vendor.node.encoding)
        assert all(vendor.word.lower() in device.type.lower() for device in devices)
        assert all(device.healthy and device.count == 10 for device in devices)
