"""Which resources stand in the Node's status, and what they are while pods hold devices of them."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from hami_mock.kubelet.limits import Version
from hami_mock.node.devices import CountedUnits, Devices
from hami_mock.node.resources import Resource
from hami_mock.node.sizing import Node, Past, release
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.node.ways import NO_PERMISSION, Permission
from hami_mock.settings.settings import load
from hami_mock.sources.configured import configured_node
from tests.unit.builders import NODE, counts, problems_of, resource_named

GPU, CORES, MEMORY = "nvidia.com/gpu", "nvidia.com/gpucores", "nvidia.com/gpumem"
PERCENTAGE = f"{MEMORY}-percentage"
UNITS = {CORES, MEMORY, PERCENTAGE}
ALLOWED = Permission(is_allowed=True)
REFUSED = Permission(refusal="the role needs the verb patch for nodes/status")
AWAY = Permission(refusal="can't get nodes n1: it is away", is_known=False)


def node_of(
    version: Version | None = (1, 35),
    permission: Permission = ALLOWED,
    past: Past | None = None,
    **flags: Any,
) -> Node:
    values = {"node-name": NODE, "vendors": "nvidia"}
    values |= {name.replace("_", "-"): str(value) for name, value in flags.items()}
    return configured_node(load(values), version, past or Past(), permission)


def in_status(node: Node) -> set[str]:
    return {resource.name for resource in node.resources if resource.in_status}


def waiting(node: Node) -> set[str]:
    return {resource.name for resource in node.resources if resource.later}


def test_what_fits_an_older_kubelet_stays_with_its_plugin() -> None:
    node = node_of()
    assert in_status(node) == set()
    assert resource_named(node, GPU).why == ""
    assert {resource_named(node, name).why for name in UNITS} == {"harmless on kubelet 1.35"}


def test_on_an_older_kubelet_what_does_not_fit_goes_alone() -> None:
    node = node_of(nvidia_cards=8, nvidia_model="A100-SXM4-80GB")
    assert in_status(node) == {MEMORY}
    memory = resource_named(node, MEMORY)
    assert (memory.count, memory.factor) == (8 * 81920, 1)
    assert memory.why.startswith("655360 devices would need a list of at least ")
    assert node.devices == 80 + 800 + 800, "what stands in the status is no device"


@pytest.mark.parametrize("version", [(1, 36), (1, 37), None])
def test_on_a_newer_kubelet_all_units_go(version: Version | None) -> None:
    node = node_of(version)
    assert in_status(node) == UNITS
    assert counts(node) == {GPU: 20, CORES: 200, MEMORY: 65536, PERCENTAGE: 200}


def test_128_cards_of_288_gb_need_no_factor() -> None:
    node = node_of(nvidia_cards=128, nvidia_memory=294912)
    memory = resource_named(node, MEMORY)
    assert memory.in_status
    assert (memory.count, memory.list_size(), memory.encode_list()) == (128 * 294912, 0, b"")


def test_with_hami_all_units_go_on_every_kubelet() -> None:
    node = node_of(hami="on")
    assert in_status(node) == UNITS
    assert "with HAMi" in resource_named(node, MEMORY).why


@pytest.mark.parametrize(("units", "expected"), [("plugin", set()), ("status", UNITS)])
def test_who_has_chosen_gets_that(units: str, expected: set[str]) -> None:
    node = node_of((1, 37) if units == "plugin" else (1, 35), NO_PERMISSION, units=units)
    assert in_status(node) == expected
    assert {resource_named(node, name).why for name in UNITS} == {f"you chose --units {units}"}
    assert resource_named(node, GPU).why == ""


def test_where_it_is_refused_the_plugins_have_them_and_say_why() -> None:
    node = node_of((1, 37), REFUSED)
    assert in_status(node) == set()
    assert {resource_named(node, name).why for name in UNITS} == {REFUSED.refusal}


def test_where_it_is_refused_and_does_not_fit_the_remedy_names_both() -> None:
    (line,) = problems_of(lambda: node_of((1, 35), REFUSED, nvidia_cards=128))
    assert "the smallest memory factor that fits is 16" in line
    assert line.endswith(
        f"; in the Node's status there is no limit, but they aren't put there: {REFUSED.refusal}"
    )


def test_a_factor_of_auto_is_1_where_the_status_takes_any_number() -> None:
    coarse = node_of((1, 37), REFUSED, nvidia_memory_factor="auto")
    assert resource_named(coarse, MEMORY).factor > 1
    fine = node_of((1, 37), nvidia_memory_factor="auto")
    assert (resource_named(fine, MEMORY).factor, in_status(fine)) == (1, UNITS)


def test_a_factor_that_was_chosen_counts_there_too() -> None:
    memory = resource_named(node_of((1, 37), nvidia_memory_factor=1024), MEMORY)
    assert (memory.in_status, memory.count, memory.unit) == (True, 64, "1024 MiB")


def test_a_card_with_less_than_a_unit_is_refused_there_too() -> None:
    (line,) = problems_of(lambda: node_of((1, 37), nvidia_memory=100, nvidia_memory_factor=300))
    assert "card 0 (V100-SXM2-32GB) has less than one unit of 300 MiB" in line


# When nobody knows whether they may stand there.


def stood(*names: str) -> Past:
    """What the record of an agent says that had these in the status."""
    return Past({name: CountedUnits({}) for name in names}, unlisted=names)


def test_what_stood_in_the_status_stays_there_and_the_others_stay_with_their_plugins() -> None:
    flags: dict[str, Any] = {"nvidia_cards": 8, "nvidia_model": "A100-SXM4-80GB"}
    assert in_status(node_of(**flags)) == {MEMORY}
    node = node_of(None, AWAY, stood(MEMORY), **flags)
    assert in_status(node) == {MEMORY}
    memory = resource_named(node, MEMORY)
    assert (memory.count, memory.why) == (
        655360,
        "they were there before, and it isn't known now whether they still may be: "
        "can't get nodes n1: it is away",
    )
    assert resource_named(node, CORES).why == AWAY.refusal
    assert (memory.later, memory.has_slots, resource_named(node, GPU).why) == (None, False, "")


@pytest.mark.parametrize("hami", ["on", "off"])
def test_what_would_fit_a_list_stays_there_too(hami: str) -> None:
    node = node_of(None, AWAY, stood(*UNITS), hami=hami)
    assert (in_status(node), node.counts) == (UNITS, [20])


def test_what_did_not_stand_there_has_a_plugin_if_its_list_has_room() -> None:
    assert in_status(node_of(None, AWAY)) == set()
    large = node_of(None, AWAY, nvidia_cards=8, nvidia_model="A100-SXM4-80GB")
    assert in_status(large) == {MEMORY}
    assert resource_named(large, MEMORY).why.startswith(
        "655360 devices would need a list of at least "
    )


def test_a_factor_of_auto_is_what_it_was() -> None:
    kept = node_of(None, AWAY, stood(*UNITS), nvidia_memory_factor="auto")
    assert (resource_named(kept, MEMORY).factor, in_status(kept)) == (1, UNITS)
    coarse = node_of(None, AWAY, nvidia_memory_factor="auto")
    assert resource_named(coarse, MEMORY).factor > 1
    assert in_status(coarse) == set()


def test_a_record_counts_only_where_nobody_knows() -> None:
    assert in_status(node_of((1, 35), ALLOWED, stood(*UNITS))) == set()
    assert in_status(node_of((1, 37), REFUSED, stood(*UNITS))) == set()


# What pods hold.


def past_of(node: Node, used: Collection[str] | None, held: Collection[str] | None = ()) -> Past:
    devices: Mapping[str, Devices] = {r.name: r.devices for r in node.resources}
    return Past(devices, held, used)


def ids(resource: Resource, index: int = 0) -> list[str]:
    return [*resource.devices.ids(resource.cards[index])]


def test_a_resource_that_pods_hold_devices_of_stays_with_its_plugin() -> None:
    before = node_of(units="plugin", nvidia_memory=50)
    now = node_of(units="status", nvidia_memory=50, past=past_of(before, {MEMORY}))
    assert (in_status(now), waiting(now)) == ({CORES, PERCENTAGE}, {MEMORY})
    memory = resource_named(now, MEMORY)
    assert memory.devices.key == resource_named(before, MEMORY).devices.key
    assert memory.why == "pods hold devices of it; it moves to the Node's status when none does"
    assert memory.later is not None
    assert (memory.later.in_status, memory.later.count) == (True, 100)
    assert now.is_settling


def test_where_nobody_knows_who_holds_what_all_plugins_stay() -> None:
    before = node_of(units="plugin", nvidia_memory=50)
    now = node_of(units="status", nvidia_memory=50, past=past_of(before, None, None))
    assert (in_status(now), waiting(now)) == (set(), UNITS)
    assert "needs the kubelet's pod-resources socket" in resource_named(now, MEMORY).why


def test_where_nobody_knows_but_there_was_no_plugin_none_is_needed() -> None:
    assert in_status(node_of(units="status", past=Past({}, None, None))) == UNITS
    before = node_of(units="status")
    assert in_status(node_of(units="status", past=past_of(before, None, None))) == UNITS


def test_it_moves_when_the_last_holder_has_gone() -> None:
    before = node_of(units="plugin", nvidia_memory=50)
    both = past_of(before, {MEMORY, CORES})
    now = node_of(units="status", nvidia_memory=50, past=both)
    assert waiting(release(now, (), {MEMORY})) == {MEMORY}
    after = release(now, ())
    assert (in_status(after), waiting(after)) == (UNITS, set())
    assert resource_named(after, MEMORY).why == "you chose --units status"
    assert not after.is_settling


def test_a_smaller_count_retires_what_is_held_until_it_moves() -> None:
    before = node_of(units="plugin", nvidia_memory=50)
    held = ids(resource_named(before, MEMORY))[-3:]
    past = past_of(before, {MEMORY}, held)
    now = node_of(units="status", nvidia_memory=40, past=past)
    memory = resource_named(now, MEMORY)
    assert (memory.count, memory.later and memory.later.count) == (80, 80)
    assert sum(memory.devices.retired.values()) == 20
    kept = resource_named(release(now, held, {MEMORY}), MEMORY)
    assert sum(kept.devices.retired.values()) == 3
    assert kept.later is not None


def test_while_pods_hold_some_there_are_no_more_than_a_list_takes() -> None:
    """As many as before: the rest comes with the status."""
    before = node_of(units="plugin", nvidia_cards=2)
    held = ids(resource_named(before, MEMORY))[:5]
    now = node_of(nvidia_cards=128, nvidia_memory=294912, past=past_of(before, {MEMORY}, held))
    memory = resource_named(now, MEMORY)
    assert isinstance(memory.devices, UnitDevices)
    assert memory.count == 65536
    assert {*held} <= {*ids(memory)}
    assert [*memory.devices.counts.values()][2:] == [0] * 126
    assert memory.later is not None
    assert memory.later.count == 128 * 294912
    assert resource_named(release(now, ()), MEMORY).count == 128 * 294912


def test_cards_that_go_meanwhile_keep_what_pods_hold_of_them() -> None:
    before = node_of(units="plugin", nvidia_cards=4, nvidia_memory=50)
    held = ids(resource_named(before, MEMORY), 3)[:2]
    now = node_of(
        units="status", nvidia_cards=2, nvidia_memory=50, past=past_of(before, {MEMORY}, held)
    )
    memory = resource_named(now, MEMORY)
    assert memory.count == 100
    assert all(memory.devices.owner(each) == (before.cards[3].uuid, True) for each in held)


def test_the_way_back_makes_devices_anew() -> None:
    before = node_of(units="status", nvidia_memory=50)
    now = node_of(units="plugin", nvidia_memory=50, past=past_of(before, ()))
    memory = resource_named(now, MEMORY)
    assert isinstance(memory.devices, UnitDevices)
    assert (memory.count, now.retired, waiting(now)) == (100, 0, set())


def test_counted_units_are_a_number_a_card_and_nothing_else() -> None:
    memory = resource_named(node_of(units="status", nvidia_memory=50), MEMORY)
    devices, card = memory.devices, memory.cards[0]
    assert isinstance(devices, CountedUnits)
    assert devices.counts == {each.uuid: 50 for each in memory.cards}
    assert [*devices.ids(card), *devices.encode(card, b"Healthy")] == []
    assert (devices.size(card, b"Healthy"), devices.retired_size(card.uuid, b"Healthy")) == (0, 0)
    assert [*devices.encode_retired(card.uuid, b"Healthy")] == []
    assert (devices.owner("000"), devices.card_of("000")) == (None, None)
    assert devices.keep_retired(()) is devices
    assert dict(devices.retired) == {}
    same = CountedUnits(dict.fromkeys(memory.cards, 50))
    assert devices.key == same.key != CountedUnits(dict.fromkeys(memory.cards, 51)).key
