import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hami_mock.settings.options import OPTIONS
from hami_mock.settings.settings import Settings, load
from hami_mock.settings.template import config_template
from tests.unit.builders import config_file


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in OPTIONS:
        for variable in option.variables:
            monkeypatch.delenv(variable, raising=False)


def without_source(settings: Settings) -> Settings:
    """Leave out where names come from, and the file itself."""
    vendors = tuple(
        replace(vendor, names={role: named.name for role, named in vendor.names.items()})  # type: ignore[misc]
        for vendor in settings.vendors
    )
    return replace(settings, vendors=vendors, given={}, config=None)


def test_the_file_as_it_is_says_nothing(tmp_path: Path) -> None:
    path = config_file(tmp_path, config_template())
    assert load({"config": path}).given == {"config": path}
    assert without_source(load({"config": path})) == without_source(load({}))


def test_with_its_defaults_uncommented_it_gives_the_default_settings(tmp_path: Path) -> None:
    text = re.sub(r"^#([a-z-]+: .+)$", r"\1", config_template(), flags=re.MULTILINE)
    assert yaml.safe_load(text).keys() == {
        option.name for option in OPTIONS if option.shown_default and option.name != "config"
    }
    settings = load({"config": config_file(tmp_path, text)})
    assert without_source(settings) == without_source(load({}))


def test_its_examples_are_valid(tmp_path: Path) -> None:
    text = re.sub(r"^# (nvidia-groups:|nodes:|  )", r"\1", config_template(), flags=re.MULTILINE)
    path = config_file(tmp_path, text)
    assert [g.cards for g in load({"config": path, "node-name": "x"}).vendors[0].groups] == [4, 2]
    assert load({"config": path, "node-name": "a100-1"}).vendors[0].groups[0].cards == 8


def test_every_option_is_there_with_its_help() -> None:
    text = " ".join(config_template().replace("\n# ", " ").split())
    for option in OPTIONS:
        if option.name != "config":
            assert f"#{option.name}:" in text
            assert option.help in text
    assert max(map(len, config_template().splitlines())) <= 100
