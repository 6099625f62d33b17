"""Whatever somebody writes into a ConfigMap: it is refused in a few lines, and never crashes."""

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hami_mock.errors import MOST_PROBLEMS, UsageError
from hami_mock.kit import files
from hami_mock.kit.text import LONGEST_LINE
from hami_mock.settings.hami_config import device_config
from hami_mock.settings.options import IN_FILE
from hami_mock.settings.settings import load
from tests.unit.builders import config_file, problems_of
from tests.unit.kit.test_strict_yaml import HOSTILE, PIECES
from tests.unit.settings.test_hami_config import NVIDIA, OTHERS

MANY = 30_000


def refusals(tmp_path: Path, text: str, option: str = "config") -> tuple[str, ...]:
    path = config_file(tmp_path, text)
    problems = problems_of(lambda: load({option: path}))
    assert len(problems) <= MOST_PROBLEMS + 1
    assert all(line.isprintable() and len(line) <= 2 * LONGEST_LINE for line in problems)
    assert path in problems[0]
    return problems


@pytest.mark.parametrize("option", ["config", "device-config-file"])
@pytest.mark.parametrize("text", [text for text, _ in HOSTILE.values()], ids=HOSTILE)
def test_what_is_too_much_is_one_line(tmp_path: Path, text: str, option: str) -> None:
    (line,) = refusals(tmp_path, text, option)
    assert "not valid YAML: " in line


def test_of_very_many_mistakes_the_first_are_told(tmp_path: Path) -> None:
    text = "nvidia-card: 1\n" + "".join(f"unknown-{i}: 1\n" for i in range(MANY // 2))
    problems = refusals(tmp_path, text)
    assert problems[0].endswith("nvidia-card: there is no such key; did you mean nvidia-cards?")
    assert problems[-1] == "… and 14981 more mistakes"


@pytest.mark.parametrize(
    "text",
    [
        '"' + "k" * 1000 + '": 1',
        "? '" + "k" * 500_000 + "'\n: 1",
        "nvidia: {? '" + "c" * 500_000 + "'\n: 1}",
        "nvidia-model: " + "T4" * 300_000,
        "http-listen: " + "a" * 500_000,
        "nvidia-groups: [{? '" + "k" * 500_000 + "'\n: 1}]",
        "nvidia-groups: [" + "5, " * MANY + "]",
        "nvidia-groups: [{cards: 128, model: " + "A100" * 100_000 + "}]",
        "nodes: [{match: '" + "*a" * 100_000 + "'}]",
        "nodes:\n" + "- {match: a}\n" * (MANY // 5),
        "nodes: " + "a" * 500_000,
        "a: '" + "\\n" * 10 + "\u2028'",
        '"a\\nb": 1',
        '"\\e[31m": 1',
        'device-config-file: "a\\0b"',
        "device-config-file: " + "x" * 500_000,
        "nvidia-cards: 0x" + "f" * 98,
        "nvidia-core-scaling: 1" + ":1" * 40,
        "nvidia-core-scaling: .nan",
        "nvidia-cards: 2024-01-01",
        "nvidia-cards: !!set {a, b}",
        "nvidia-cards: !!binary aGVsbG8=",
        "ignored-xids: [" + "x, " * MANY + "]",
    ],
)
def test_a_long_or_odd_value_is_told_in_short_lines(tmp_path: Path, text: str) -> None:
    path = config_file(tmp_path, text)
    problems = problems_of(lambda: load({"config": path}))
    assert len(problems) <= MOST_PROBLEMS + 1
    assert all(line.isprintable() and len(line) <= 2 * LONGEST_LINE for line in problems)


@pytest.mark.parametrize("option", ["config", "device-config-file"])
def test_what_is_no_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(files, "PATIENCE_SECONDS", 0.05)
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero", "/", "/nowhere"):
        (line,) = problems_of(lambda path=path: load({option: path}))  # type: ignore[misc]
        assert line.startswith(f"--{option}: can't read {path!r}: ")


@pytest.mark.parametrize(
    "overrides",
    [{"socket-dir": "/" + "\ud800" * 50}, {"device-config-file": "\ud800"}, {"x" * 100_000: "1"},
     {"nvidia-cards": "9" * 5000}, {"nvidia-cards": "1_" * 5000}, {"nvidia-cards": "1e400"},
     {"nvidia-model": "\ud800" * 5000}, {"vendors": "," * 100_000}],
)  # fmt: skip
def test_what_is_set_while_the_agent_runs_is_refused_too(overrides: dict[str, str]) -> None:
    problems = problems_of(lambda: load({}, overrides))
    assert all(line.isprintable() and len(line) <= 10 * LONGEST_LINE for line in problems)


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.dates()
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.one_of(
    st.sampled_from(sorted(IN_FILE)), st.sampled_from(["nodes", "nvidia", "match", "memory"])
)


def check(flags: dict[str, str], overrides: dict[str, str] | None = None) -> None:
    problems: tuple[str, ...] = ()
    try:
        load(flags, overrides)
    except UsageError as error:
        problems = error.problems
    assert all(line.isprintable() for line in problems)


fuzzed = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@fuzzed
@given(document=st.dictionaries(KEYS, VALUES, max_size=6), sections=st.lists(VALUES, max_size=2))
def test_any_values_are_read_or_refused(
    tmp_path: Path, document: dict[str, object], sections: list[object]
) -> None:
    document["nodes"] = [{"match": "*", **document}, *sections]
    check({"config": config_file(tmp_path, yaml.safe_dump(document))})


@fuzzed
@given(values=st.dictionaries(KEYS, st.text(), max_size=4))
def test_any_texts_are_taken_or_refused(values: dict[str, str]) -> None:
    check({}, values)


@fuzzed
@given(
    seed=st.sampled_from([NVIDIA, OTHERS]),
    at=st.floats(0, 1),
    length=st.integers(0, 30),
    piece=st.lists(PIECES, max_size=3).map("".join),
)
def test_any_change_to_hamis_file_is_read_or_refused(
    seed: str, at: float, length: int, piece: str
) -> None:
    start = int(at * len(seed))
    text = seed[:start] + piece + seed[start + length :]
    problems: tuple[str, ...] = ()
    try:
        device_config.parse(text, "x.yaml")
    except UsageError as error:
        problems = error.problems
    assert all(line.startswith("x.yaml: ") and line.isprintable() for line in problems)
