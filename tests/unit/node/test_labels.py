from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.node.cards import Card, CardGroup, make_cards
from hami_mock.node.labels import node_labels, stamps
from hami_mock.node.sizing import Node
from hami_mock.vendors import VENDORS, Vendor, catalog
from hami_mock.vendors.label_text import is_label, may_be_ours
from hami_mock.vendors.labelling import LabelSet
from tests.makers import NVIDIA
from tests.unit.builders import NODE, cards, laid_out

EVERY = tuple(LabelSet)


DRIVER = "580.95.05"


def test_no_set_is_no_label() -> None:
    assert node_labels(laid_out(), (), 0, DRIVER) == {}


def test_all_vendors_of_a_node_are_told_in_order() -> None:
    found = node_labels(laid_out(), (LabelSet.HAMI, LabelSet.NFD), 0, DRIVER)
    assert found.keys() >= {"gpu", "mlu", "ascend", "feature.node.kubernetes.io/pci-1e3e.present"}
    assert list(found) == sorted(found)


def test_slots_are_gfds_replicas() -> None:
    whole = node_labels(laid_out(nvidia_split=1), (LabelSet.GFD,), 0, DRIVER)
    assert whole["nvidia.com/gpu.replicas"] == "1"
    shared = node_labels(laid_out(nvidia_split=7), (LabelSet.GFD,), 0, DRIVER)
    assert shared["nvidia.com/gpu.replicas"] == "7"
    assert shared["nvidia.com/gpu.product"].endswith("-SHARED")


def test_the_mode_decides_on_mig() -> None:
    each: tuple[dict[str, Any], ...] = ({}, {"hami": "on"}, {"device_plugins": "off"})
    for others in each:
        node = laid_out(nvidia_model="A100-SXM4-40GB", nvidia_mode="mig", **others)
        found = node_labels(node, (LabelSet.GFD,), 0, DRIVER)
        assert found["nvidia.com/mig.strategy"] == "mixed"
        assert found["nvidia.com/mig-1g.5gb.count"] == "14"


def test_a_lost_card_is_not_counted_and_the_last_takes_all_along() -> None:
    node = laid_out(nvidia_cards=2, mlu_cards=0, iluvatar_cards=0, ascend_cards=0)
    uuids = [card.uuid for card in node.cards]
    assert node_labels(node, EVERY, 0, DRIVER, uuids[:1])["nvidia.com/gpu.count"] == "1"
    assert node_labels(node, EVERY, 0, DRIVER, uuids) == {}


def test_where_two_sets_write_the_same_label_the_first_wins() -> None:
    found = node_labels(laid_out(), (LabelSet.FAKE_GPU_OPERATOR, LabelSet.GFD), 0, DRIVER)
    assert found["nvidia.com/gpu.product"] == "Tesla-V100-SXM2-32GB-SHARED"
    assert found["run.ai/fake.gpu"] == "true"
    both = node_labels(laid_out(), (LabelSet.AKS, LabelSet.VENDORS), 0, DRIVER)
    assert both["accelerator"] == "huawei-Ascend910"


def test_the_stamps_are_labels_that_say_when() -> None:
    found = node_labels(laid_out(), EVERY, 1234567890, DRIVER)
    assert {key for key, value in found.items() if value == "1234567890"} == stamps()


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.prefix)
def test_every_model_has_valid_labels_that_are_known_as_ours(vendor: Vendor) -> None:
    for model in catalog.models()[vendor.maker].values():
        own = make_cards(NODE, vendor, [CardGroup(model, model.memory, (None, None))])
        found = node_labels(Node(NODE, own, ()), EVERY, 1, DRIVER)
        assert all(may_be_ours(key) and is_label(key, value) for key, value in found.items())


@st.composite
def any_card(draw: st.DrawFn) -> Card:
    vendor = draw(st.sampled_from(VENDORS))
    text = st.text(max_size=100)
    model = catalog.Model(
        draw(text), draw(text), 1, draw(st.integers(0, 10**9)), draw(text), 1,
        draw(st.sampled_from(["", "8.0", "99.9"])),
    )  # fmt: skip
    memory = draw(st.integers(1, 2**40))
    return replace(cards(1, vendor)[0], model=model, memory=memory)


@given(st.lists(any_card(), max_size=4))
def test_whatever_a_real_plugin_calls_its_cards_labels_are_valid(own: list[Card]) -> None:
    found = node_labels(Node(NODE, tuple(own), ()), EVERY, 1, DRIVER)
    assert all(may_be_ours(key) and is_label(key, value) for key, value in found.items())


def test_a_model_without_a_name_still_has_the_others() -> None:
    model = catalog.Model("?", "®", 1, 1, "", 1)
    odd = replace(cards(1, NVIDIA)[0], model=model)
    found = node_labels(Node(NODE, (odd,), ()), (LabelSet.GFD,), 1, DRIVER)
    assert found["nvidia.com/gpu.product"] == ""
    assert "nvidia.com/gpu.family" not in found
