"""What NVML says of cards: of every model, and of cards that are linked."""

from typing import Any

import pytest

from hami_mock.node.cards import Card, CardGroup, make_cards
from hami_mock.vendors import catalog
from hami_mock.vendors.driver import Machine
from hami_mock.vendors.nvidia_boards import bar1, board, multiprocessors
from hami_mock.vendors.nvidia_nvml import about, event_types, identify, standing
from hami_mock.views.driver.layout import FLAGS, IDENTITY
from tests.makers import NVIDIA

MODELS = catalog.models()["nvidia"].values()


def made(
    name: str, count: int = 1, *, numa: int | None = None, linked: bool = False
) -> tuple[Card, ...]:
    model = catalog.find("nvidia", name)
    assert model is not None
    links = (frozenset(range(count)),) if linked else ()
    return make_cards("n", NVIDIA, [CardGroup(model, model.memory, (numa,) * count, links)])


def said(cards: tuple[Card, ...], index: int = 0, cpus: int = 8) -> dict[str, Any]:
    return identify(cards[index], Machine(cards, "580.95.05", cpus))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_model_of_the_catalog_has_a_board(model: catalog.Model) -> None:
    here = board(model)
    assert int(here.device, 16)
    assert int(here.subsystem, 16)
    found = said(made(model.name))
    assert IDENTITY.pack({**found, "flags": 0})
    assert set(found["flags"]) <= set(FLAGS)
    assert found["architecture"]
    least, most = found["power_limit_least"], found["power_limit_most"]
    assert 0 < least < most == model.power * 1000
    assert found["multiprocessors"] * (64 if float(model.compute) < 8.6 else 128) == model.cores
    assert found["threshold_slowdown"] <= found["threshold_shutdown"]
    assert (found["link_count"] == 0) == (found["link_version"] == 0)


def test_pci_ids_of_two_models_differ_unless_they_share_a_chip() -> None:
    ids: dict[str, list[str]] = {}
    for model in MODELS:
        ids.setdefault(board(model).device, []).append(model.name)
    assert [names for names in ids.values() if len(names) > 1] == [["A2", "A16"]]


def test_a_model_that_only_a_real_plugin_knows_is_said_with_what_is_known() -> None:
    model = catalog.Model("X1", "NVIDIA X1", 4096, 0, "", 0)
    cards = make_cards("n", NVIDIA, [CardGroup(model, 4096, (None,))])
    found = said(cards)
    assert IDENTITY.pack({**found, "flags": 0})
    assert (found["name"], found["compute_major"], found["architecture"]) == ("NVIDIA X1", 0, 0)


def test_an_a100_is_as_its_data_sheet_says() -> None:
    found = said(made("A100-SXM4-80GB"))
    assert found["pci_id"] == 0x20B2_10DE
    assert (found["multiprocessors"], found["memory_bus_width"]) == (108, 5120)
    assert (found["compute_major"], found["compute_minor"]) == (8, 0)
    assert found["bar1_total"] == 128 * 2**30
    assert found["flags"] == {
        "FLAG_ECC", "FLAG_MIG", "FLAG_ROW_REMAPPER", "FLAG_MEMORY_TEMPERATURE",
    }  # fmt: skip


def test_a_card_for_the_desk_has_a_fan_and_no_ecc() -> None:
    found = said(made("RTX-4090"))
    assert found["flags"] == {"FLAG_FAN", "FLAG_DISPLAY"}
    assert (found["pci_class"], found["fans"], found["brand"]) == (0x030000, 1, 15)
    assert standing(found)["ecc_mode"] == 0


@pytest.mark.parametrize(("name", "count"), [("V100-SXM2-32GB", 2), ("V100-SXM2-32GB", 4),
                                             ("A40", 2), ("V100-SXM2-16GB", 8)])  # fmt: skip
def test_both_ends_of_a_link_agree(name: str, count: int) -> None:
    cards = made(name, count, linked=True)
    ends = {}
    for card in cards:
        for number, link in enumerate(said(cards, card.index)["links"]):
            peer = next(
                c for c in cards if int(c.pci_bus_id.split(":")[1], 16) == link["remote_bus"]
            )
            ends[card.index, number] = (peer.index, link["remote_link"])
    if board(cards[0].model).links % (count - 1) == 0:
        assert all(ends[there] == here for here, there in ends.items())
    assert all(card != peer for (card, _), (peer, _) in ends.items())


def test_links_on_a_baseboard_end_in_switches() -> None:
    cards = made("H100-SXM5-80GB", 8, linked=True)
    links = said(cards, 3)["links"]
    assert len(links) == 18
    assert {(link["remote_type"], link["remote_pci_id"]) for link in links} == {(2, 0x22A3_10DE)}
    assert standing(said(cards))["links_down"] == 0


def test_links_that_lead_nowhere_are_down() -> None:
    found = said(made("H100-SXM5-80GB", 2))
    assert found["links"] == []
    assert standing(found)["links_down"] == 2**18 - 1


def test_cpus_are_shared_among_numa_nodes() -> None:
    model = catalog.find("nvidia", "T4")
    assert model is not None
    cards = make_cards("n", NVIDIA, [CardGroup(model, model.memory, (0, 1, None))])
    near = [said(cards, index, cpus=128)["cpus"][:2] for index in range(3)]
    every = 2**64 - 1
    assert near == [[every, 0], [0, every], [every, 0]]
    assert [said(cards, index)["numa_node"] for index in range(3)] == [0, 1, -1]


def test_a_version_says_which_cuda_it_runs() -> None:
    assert about("535.104.05") == {
        "driver_version": "535.104.05",
        "driver_branch": "r535_00",
        "nvml_version": "12.535.104.05",
        "cuda_version": 12020,
    }


def test_memory_errors_are_events_of_their_own() -> None:
    assert [event_types(xid) for xid in (79, 48, 92)] == [(8,), (8, 2), (8, 1)]


def test_small_things() -> None:
    t4, a100 = made("T4")[0].model, made("A100-SXM4-40GB")[0].model
    assert (bar1(t4, t4.memory), bar1(a100, a100.memory)) == (256, 65536)
    assert (multiprocessors(t4), multiprocessors(a100)) == (40, 108)
