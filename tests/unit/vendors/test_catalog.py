import pytest

from hami_mock.vendors import VENDORS, Vendor, catalog
from hami_mock.vendors.catalog import Model

MODELS = [
    pytest.param(vendor, model, id=f"{vendor.prefix}-{model.name}")
    for vendor in VENDORS
    for model in catalog.models()[vendor.maker].values()
]


@pytest.mark.parametrize(
    ("vendor", "least"),
    [("nvidia", 14), ("cambricon", 5), ("iluvatar", 4), ("ascend", 7), ("hygon", 4), ("amd", 4)]
    + [(vendor.maker, 3) for vendor in VENDORS if not vendor.cards],
)
def test_there_are_enough_models(vendor: str, least: int) -> None:
    assert len(catalog.models()[vendor]) >= least


def test_every_maker_and_nobody_else_is_in_the_catalog() -> None:
    assert set(catalog.models()) == {vendor.maker for vendor in VENDORS}


@pytest.mark.parametrize(("vendor", "model"), MODELS)
def test_figures_are_sane(vendor: Vendor, model: Model) -> None:
    assert 4096 <= model.memory <= 300_000
    assert 2 <= model.cores <= 25_000
    assert 5 <= model.power <= 1500
    assert model.product
    assert model.family == model.family.lower() != ""
    assert bool(model.compute) == (vendor.prefix == "nvidia")
    assert bool(model.chip) == vendor.has_chips
    assert " " not in model.name


@pytest.mark.parametrize("vendor", [v for v in VENDORS if v.has_chips], ids=lambda v: v.prefix)
def test_every_chip_that_hami_knows_has_a_model_and_no_other_chip_has(vendor: Vendor) -> None:
    assert {model.chip for model in catalog.models()[vendor.maker].values()} == set(vendor.words)


@pytest.mark.parametrize(("vendor", "model"), MODELS)
def test_a_model_is_found_in_any_case(vendor: Vendor, model: Model) -> None:
    for name in (model.name, model.name.lower(), model.name.upper()):
        assert catalog.find(vendor.maker, name) is model


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.prefix)
def test_the_default_model_exists(vendor: Vendor) -> None:
    assert catalog.find(vendor.maker, vendor.model) is not None


@pytest.mark.parametrize(
    ("vendor", "name", "memory"),
    [
        ("nvidia", "T4", 15360),
        ("nvidia", "V100-SXM2-32GB", 32768),
        ("nvidia", "A100-SXM4-80GB", 81920),
        ("nvidia", "B200", 183359),
        ("ascend", "Ascend910B3", 65536),
        ("amd", "MI300X", 196592),
        ("hygon", "K100-AI", 65520),
    ],
)
def test_well_known_models_have_their_memory(vendor: str, name: str, memory: int) -> None:
    model = catalog.find(vendor, name)
    assert model is not None
    assert model.memory == memory


@pytest.mark.parametrize("name", ["", "T", "T44", "MLU590", "T4 "])
def test_another_name_finds_nothing(name: str) -> None:
    assert catalog.find("nvidia", name) is None


@pytest.mark.parametrize(
    ("vendor", "name", "expected"),
    [
        ("nvidia", "A100", "A100-PCIE-40GB"),
        ("nvidia", "h100-sxm5", "H100-SXM5-80GB"),
        ("nvidia", "RTX4090", "RTX-4090"),
        ("ascend", "910b3", "Ascend910B3"),
        ("cambricon", "MLU370", "MLU370-X8"),
    ],
)
def test_similar_names_are_suggested(vendor: str, name: str, expected: str) -> None:
    assert expected in catalog.similar(vendor, name)


def test_nothing_is_suggested_for_what_looks_like_nothing() -> None:
    assert catalog.similar("nvidia", "qqqqqq") == []
