"""Cutting cards into instances."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.node.event_kinds import Kind
from hami_mock.node.instances import Cut, Cutter, Instance, InUse, NoInstance, NoRoom
from hami_mock.node.sizing import Node
from hami_mock.node.state import NodeState
from hami_mock.vendors import catalog
from tests.makers import NVIDIA
from tests.unit.builders import laid_out

MODELS = [
    model
    for model in catalog.models()["nvidia"].values()
    if NVIDIA.cutting and NVIDIA.cutting().profiles(model)
]


def cutter(model: str = "A100-SXM4-40GB") -> Cutter:
    found = catalog.find("nvidia", model)
    assert found is not None
    return Cutter(NVIDIA, found, "GPU-1")


def node(**options: Any) -> Node:
    return laid_out(None, vendors="nvidia", **{"nvidia_model": "A100-SXM4-40GB", **options})


def test_instances_are_placed_where_the_driver_places_them() -> None:
    """As `nvidia-smi mig -cgi 9,14,19 -C` and -lgi show it: the last place that is free."""
    on, cut = cutter(), Cut()
    places = []
    for name in ("3g.20gb", "2g.10gb", "1g.5gb"):
        made = on.make(cut, on.profile(name))
        cut = made.cut
        places.append((name, cut.part(made.id).start, made.id))
    assert places == [("3g.20gb", 4, 2), ("2g.10gb", 2, 4), ("1g.5gb", 1, 8)]


def test_what_is_configured_finds_its_places_in_whatever_order_it_is_listed() -> None:
    """The balanced geometry that NVIDIA's tools offer fits only with the 3g at the end."""
    on = cutter()
    for names in (
        ["1g.5gb", "3g.20gb", "2g.10gb", "1g.5gb"],
        ["3g.20gb", "1g.5gb", "1g.5gb", "2g.10gb"],
    ):
        devices = on.devices(on.cut_into(names))
        assert sorted((each.start, each.profile) for each in devices) == [
            (0, "1g.5gb"), (1, "1g.5gb"), (2, "2g.10gb"), (4, "3g.20gb"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "memory", "name"),
    [("2g.10gb", 9856, "2g.10gb"), ("3g.20gb", 19968, "3g.20gb"), ("7g.39gb", 40192, "7g.40gb"),
     ("1g.10gb", 9856, "1g.10gb"), ("9g.1gb", 9856, "1g.10gb")],
)  # fmt: skip
def test_what_containers_hold_is_of_the_profile_that_it_says(
    told: str, memory: int, name: str
) -> None:
    """1g.10gb and 2g.10gb have the same memory; HAMi's names aren't all NVIDIA's."""
    on = cutter()
    cut = on.with_held(Cut(), [Instance("MIG-1", told, memory, 29, 0, 3, 0)])
    assert cut is not None
    assert [part.profile.name for part in cut.parts] == [name]


def test_a_card_holds_no_more_than_it_has_room_for() -> None:
    on = cutter()
    assert len(on.devices(on.cut_into(["1g.5gb"] * 7))) == 7
    many = (["1g.5gb"] * 8, ["7g.40gb", "1g.5gb"], ["4g.20gb", "4g.20gb"], ["1g.5gb+me"] * 2)
    for too_much in many:
        with pytest.raises(NoRoom):
            on.cut_into(too_much)
    # The one that is too many, whichever was named first.
    with pytest.raises(NoRoom, match=r"^there is no room for a 1g\.5gb beside 3g.20gb, 3g.20gb$"):
        on.cut_into(["1g.5gb", "3g.20gb", "3g.20gb"])


def test_compute_instances_share_a_gpu_instance() -> None:
    on = cutter()
    made = on.make(Cut(), on.profile("3g.20gb"))
    one = on.make_compute(made.cut, made.id, 1)
    two = on.make_compute(one.cut, made.id, 2)
    assert (one.id, two.id) == (0, 1)
    names = [each.profile for each in on.devices(two.cut)]
    assert names == ["1c.3g.20gb", "2c.3g.20gb"]
    assert len({each.uuid for each in on.devices(two.cut)}) == 2
    with pytest.raises(NoRoom):
        on.make_compute(two.cut, made.id, 1)
    with pytest.raises(InUse):
        on.remove(two.cut, made.id)
    left = on.remove_compute(on.remove_compute(two.cut, made.id, 0), made.id, 1)
    assert on.remove(left, made.id) == Cut()


def test_what_is_not_there_is_said_so() -> None:
    on = cutter()
    with pytest.raises(NoInstance, match="no profile 9g"):
        on.profile("9g.1gb")
    with pytest.raises(NoInstance, match="no GPU instance 3"):
        on.remove(Cut(), 3)
    with pytest.raises(NoInstance, match="no compute instance"):
        on.remove_compute(on.make(Cut(), on.profile(19)).cut, 13, 0)
    with pytest.raises(NoInstance, match="T4 can't be cut"):
        cutter("T4")


@given(st.sampled_from(MODELS), st.data())
def test_however_a_card_is_cut_nothing_overlaps(model: Any, data: st.DataObject) -> None:
    on, cut = Cutter(NVIDIA, model, "GPU-1"), Cut()
    for _ in range(20):
        removes: bool = data.draw(st.booleans())
        if cut.parts and removes:
            part = data.draw(st.sampled_from(cut.parts))
            for compute in part.computes:
                cut = on.remove_compute(cut, part.id, compute.id)
            cut = on.remove(cut, part.id)
            continue
        profile = data.draw(st.sampled_from(on.profiles))
        try:
            made = on.make(cut, profile)
        except NoRoom:
            assert not on.starts(cut, profile)
            continue
        cut = on.make_compute(made.cut, made.id).cut
    units = [unit for part in cut.parts for unit in part.units]
    assert len(units) == len(set(units))
    assert all(unit < on.units for unit in units)
    assert len({part.id for part in cut.parts}) == len(cut.parts)
    assert sum(each.cores for each in on.devices(cut)) <= 107, "each is rounded up"
    assert sum(each.memory for each in on.devices(cut)) <= model.memory


# In the state.


def test_a_configured_cut_is_there_from_the_start() -> None:
    state = NodeState(node(nvidia_mig="2g.10gb,1g.5gb"))
    for card in state.node.cards:
        assert [each.profile for each in state.instances(card)] == ["2g.10gb", "1g.5gb"]
    whole = NodeState(node())
    assert whole.cuts == {}
    assert whole.instances(whole.node.cards[0]) == []
    empty = NodeState(node(nvidia_mig=""))
    assert empty.cuts == {card.uuid: Cut() for card in empty.node.cards}


def test_what_was_cut_while_it_ran_stays_until_the_configuration_of_the_card_changes() -> None:
    state = NodeState(node())
    card, other = state.node.cards
    on = Cutter(card.vendor, card.model, card.uuid)
    state.cut(card, on.cut_into(["7g.40gb"]))
    (event,) = state.events.after(0)
    assert (event.kind, event.subject, event.message) == (
        Kind.CARD_CUT, card.name, "cut into 7g.40gb at 0",
    )  # fmt: skip
    assert [each.profile for each in state.instances(card)] == ["7g.40gb"]
    assert state.instances(other) == []
    state.change(node(nvidia_split=5))
    assert [each.profile for each in state.instances(card)] == ["7g.40gb"]
    state.change(node(nvidia_mig="1g.5gb"))
    assert [each.profile for each in state.instances(card)] == ["1g.5gb"]
    state.cut(state.node.cards[0], None)
    assert state.instances(card) == []
