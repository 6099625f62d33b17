import itertools
import re
import tomllib
from pathlib import Path

import pytest

from hami_mock.node.cards import card_uuid
from hami_mock.vendors import VENDORS, Offer, Role, Vendor
from tests.defaults import DEFAULT_COUNTS
from tests.makers import (
    AMD,
    AWS_NEURON,
    BY_WORD,
    CAMBRICON,
    ENFLAME,
    HYGON,
    ILUVATAR,
    METAX,
    METAX_GPU,
    MTHREADS,
    NVIDIA,
    VASTAI,
)
from tests.unit.builders import offer_of

OFFERS = [offer for vendor in VENDORS for offer in vendor.offers]
HEX_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def test_units_have_heads_and_slots_have_none() -> None:
    assert {offer.role for offer in OFFERS if not offer.heads} == {Role.SLOTS}
    assert Role.SLOTS not in {offer.role for offer in OFFERS if offer.heads}


def test_no_name_flag_or_alias_is_there_twice() -> None:
    for names in ([o.name for o in OFFERS if o.name], [o.name_in_hami("x") for o in OFFERS]):
        assert len(set(names)) == len(names)
    flags = list(itertools.chain.from_iterable((o.flag, *o.flag_aliases) for o in OFFERS))
    assert len(set(flags)) == len(flags)


def test_the_eight_resources_of_hamis_mock_are_the_defaults() -> None:
    names = {o.name for vendor in VENDORS if vendor.cards for o in vendor.offers if not o.hami}
    assert names == set(DEFAULT_COUNTS)
    assert [vendor.prefix for vendor in VENDORS if vendor.cards] == [
        "nvidia",
        "mlu",
        "iluvatar",
        "ascend",
    ]


def test_every_resource_has_a_name_somewhere() -> None:
    assert all(offer.name or offer.hami_name for offer in OFFERS)


def test_no_vendor_has_two_resources_of_one_role() -> None:
    for vendor in VENDORS:
        roles = [offer.role for offer in vendor.offers]
        assert len(set(roles)) == len(roles)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.prefix)
def test_every_vendor_has_a_resource_that_counts_slots(vendor: Vendor) -> None:
    assert vendor.offers_role(Role.SLOTS)


def test_a_vendor_knows_what_its_cards_offer() -> None:
    assert NVIDIA.offers_role(Role.MEMORY)
    assert not VASTAI.offers_role(Role.MEMORY)


def test_each_of_hamis_words_is_one_vendors() -> None:
    words = [word for vendor in VENDORS for word in vendor.words]
    assert sorted(words) == sorted(BY_WORD)


@pytest.mark.parametrize(
    ("vendor", "chip", "names"),
    [
        (NVIDIA, "", {"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores",
                      "nvidia.com/gpumem-percentage"}),
        (CAMBRICON, "", {"cambricon.com/vmlu", "cambricon.com/mlu.smlu.vmemory",
                         "cambricon.com/mlu.smlu.vcore"}),
        (ILUVATAR, "BI-V150", {"iluvatar.ai/BI-V150-vgpu", "iluvatar.ai/BI-V150.vMem",
                               "iluvatar.ai/BI-V150.vCore"}),
        (HYGON, "", {"hygon.com/dcunum", "hygon.com/dcumem", "hygon.com/dcucores"}),
        (METAX_GPU, "", {"metax-tech.com/gpu"}),
        (AWS_NEURON, "", {"aws.amazon.com/neuron", "aws.amazon.com/neuroncore"}),
    ],
    ids=lambda value: value.prefix if isinstance(value, Vendor) else "",
)  # fmt: skip
def test_names_in_hami(vendor: Vendor, chip: str, names: set[str]) -> None:
    assert {offer.name_in_hami(chip) for offer in vendor.offers} == names


@pytest.mark.parametrize(
    ("vendor", "unit"),
    [(NVIDIA, 1), (CAMBRICON, 256), (ILUVATAR, 256), (HYGON, 1), (METAX, 1024), (ENFLAME, 1024),
     (MTHREADS, 512), (AMD, 1)],
    ids=lambda value: value.prefix if isinstance(value, Vendor) else "",
)  # fmt: skip
def test_units_of_memory(vendor: Vendor, unit: int) -> None:
    assert offer_of(vendor, Role.MEMORY).memory_unit == unit


def test_cores_are_percent_but_for_two_vendors() -> None:
    others = {o.flag: o.per_card for o in OFFERS if o.per_card != 100}
    assert others == {"mthreads-resource-core-name": 16, "awsneuron-resource-core-name": None}


@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.flag)
def test_memory_units_are_powers_of_two(offer: Offer) -> None:
    """`auto` picks a power of two for all vendors: it must be a multiple of each unit, or less."""
    assert offer.memory_unit.bit_count() == 1


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.prefix)
def test_a_whole_card_is_one_slot(vendor: Vendor) -> None:
    assert not vendor.is_whole or vendor.split == 1


@pytest.mark.parametrize(
    ("key", "form", "first"),
    [
        ("hygon", r"DCU-\d{14}", "DCU-41322536172318"),
        ("metax", f"GPU-{HEX_UUID}", "GPU-1ef087bc"),
        ("amd", r"GPU-[0-9a-f]{16}", "GPU-88bbf58d518755e7"),
        ("kunlun", HEX_UUID, "e6ed3a6b"),
    ],
)
def test_cards_are_called_as_their_vendor_does(key: str, form: str, first: str) -> None:
    (vendor,) = (vendor for vendor in VENDORS if vendor.prefix == key)
    assert re.fullmatch(form, card_uuid("node-a", vendor, 0))
    assert card_uuid("node-a", vendor, 0).startswith(first)


def test_the_import_contract_names_every_file_of_a_maker() -> None:
    root = Path(__file__).parents[3]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["name"].startswith("A maker is known"))
    shared = {
        "__init__", "asking", "catalog", "dra", "dra_example", "driver", "exporter", "hami_vendor",
        "handout", "instance_profile", "label_text", "labelling", "physics", "scheduling", "smi",
        "vendor",
    }  # fmt: skip
    files = {path.stem for path in (root / "src/hami_mock/vendors").glob("*.py")} - shared
    assert contract["forbidden_modules"] == [f"hami_mock.vendors.{file}" for file in sorted(files)]
