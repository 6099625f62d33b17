import pytest

from hami_mock.cli.models import model_rows, models_table
from hami_mock.vendors import VENDORS, catalog
from tests.unit.builders import problems_of


def test_every_model_of_the_catalog_has_a_row_and_a_line() -> None:
    rows = model_rows()
    assert len(rows) == sum(len(catalog.models()[vendor.maker]) for vendor in VENDORS)
    lines = list(models_table(rows))
    assert len(lines) == len(rows) + 1
    assert all(row["name"] in line for row, line in zip(rows, lines[1:], strict=True))


def test_a_narrow_terminal_has_every_models_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "")
    rows = model_rows()
    lines = list(models_table(rows))
    assert max(map(len, lines)) <= 80
    assert [line.split()[1] for line in lines[1:]] == [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["T4"], ["T4"]),
        (["nvidia", "tesla t4"], ["T4"]),
        (["nvidia", "v100-*-16gb"], ["V100-PCIE-16GB", "V100-SXM2-16GB"]),
    ],
)
def test_words_choose_models(words: list[str], names: list[str]) -> None:
    assert sorted(row["name"] for row in model_rows(words)) == names


def test_a_vendor_chooses_all_of_its_models_and_no_others() -> None:
    assert {row["vendor"] for row in model_rows(["nvidia"])} == {"nvidia"}
    assert len(model_rows(["nvidia"])) == len(catalog.models()["nvidia"])


def test_a_maker_may_be_called_by_its_name_or_by_the_prefix_of_its_flags() -> None:
    assert model_rows(["cambricon"]) == model_rows(["mlu"])
    assert {row["vendor"] for row in model_rows(["metax"])} == {"metax", "metax-gpu"}


def test_no_model_is_a_mistake_with_a_hint() -> None:
    assert problems_of(lambda: model_rows(["nvidai"])) == (
        "no model matches 'nvidai'; did you mean nvidia?",
    )
