from pathlib import Path

import pytest

from hami_mock.settings.differences import differences
from hami_mock.settings.options import OPTIONS, Option, Takes
from hami_mock.settings.settings import load
from tests.unit.builders import config_file

OTHER = {
    "units": "plugin",
    "config": "x",
    "node-name": "other",
    "vendors": "nvidia",
    "socket-dir": "/elsewhere",
    "http-listen": ":1",
    "dcgm-listen": ":1",
    "hami-monitor-listen": ":1",
    "vendor-metrics-listen": ":1",
    "dcgm-hostname-label": "hostname",
    "kubelet-version": "1.30",
    "control-socket": "/x.sock",
    "pod-resources-socket": "/y.sock",
    "device-config-file": "x",
    "scenario": "x.yaml",
    "ignored-xids": "79",
    "source": "hami",
    "labels": "gfd",
    "driver-root": "/z",
    "driver-version": "550.1",
    "dra": "hami",
    "dra-plugins-dir": "/p",
    "dra-registry-dir": "/r",
    "cdi-dir": "/c",
    "device-plugins": "off",
}
"""Another value than the default, where `other` can't know one."""


def other(option: Option) -> str:
    """Return a value that isn't the default."""
    if option.name in OTHER:
        return OTHER[option.name]
    candidates = ("3", "2.5", "on", "debug", "json", "mig", "hami-core", "T4", "example.com/x")
    for text in candidates:
        try:
            if option.kind.read(text) != option.default:
                return text
        except ValueError:
            continue
    raise AssertionError(option.name)


@pytest.mark.parametrize(
    "option",
    [o for o in OPTIONS if o.name not in ("config", "device-config-file")
     and not o.name.endswith(("-model", "-mig"))],
    ids=lambda option: option.name,
)  # fmt: skip
def test_every_option_that_differs_is_named_alone(option: Option) -> None:
    before = load({"node-name": "a"})
    after = load({"node-name": "a", option.name: other(option)})
    (found,) = differences(before, after)
    assert found.option.name == option.name
    assert found.takes_effect is option.takes_effect
    # The tests' own environment switches some sockets off.
    assert found.before in (option.shown_default, "unset", "a", '""')
    assert list(differences(after, after)) == []


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"ignored-xids": "79"}, "ignored-xids: 13,31,43,45,68,109 → 79"),
        ({"ignored-xids": ""}, 'ignored-xids: 13,31,43,45,68,109 → ""'),
        ({"log-level": "debug"}, "log-level: info → debug"),
        ({"nvidia-cards": "3"}, "nvidia-cards: 2 → 3"),
        ({"nvidia-memory-factor": "auto"}, "nvidia-memory-factor: 1 → auto"),
        ({"kubelet-version": "v1.35.2"}, "kubelet-version: unset → 1.35"),
        ({"kubernetes-events": "on"}, "kubernetes-events: takes effect at the next start"),
    ],
)
def test_a_difference_in_words(flags: dict[str, str], line: str) -> None:
    (found,) = differences(load({}), load(flags))
    assert found.line == line


def test_another_way_to_write_the_same_is_no_difference() -> None:
    same = {"ignored-xids": "109, 13,31,43,45,68", "hami": "false", "nvidia-memory-scaling": "1"}
    assert list(differences(load({}), load(same))) == []


def test_groups_that_changed_are_named(tmp_path: Path) -> None:
    before = load({"config": config_file(tmp_path, "nvidia-groups: [{cards: 1}]")})
    after = load({"config": config_file(tmp_path, "nvidia-groups: [{cards: 2}]")})
    (found,) = differences(before, after)
    assert (found.line, found.takes_effect) == ("nvidia-groups: changed", Takes.AT_ONCE)


def test_what_is_fixed_takes_effect_at_a_start() -> None:
    fixed = [option for option in OPTIONS if option.fixed]
    assert {option.name for option in fixed} == {"config", "node-name", "hami", "source"}
    assert {option.takes_effect for option in fixed} == {Takes.AT_START}


def test_a_count_over_groups_says_how_many_cards_the_node_had(tmp_path: Path) -> None:
    file = config_file(tmp_path, "nvidia-groups: [{cards: 3}, {cards: 5, model: T4}]")
    all_cards, four, eight = (
        load({"config": file}, overrides)
        for overrides in ({}, {"nvidia-cards": "4"}, {"nvidia-cards": "8"})
    )
    assert [found.line for found in differences(all_cards, four)] == ["nvidia-cards: 8 → 4"]
    assert [found.line for found in differences(four, all_cards)] == ["nvidia-cards: 4 → 8"]
    assert list(differences(all_cards, eight)) == []
