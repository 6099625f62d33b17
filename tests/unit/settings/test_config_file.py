from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hami_mock.errors import UsageError
from hami_mock.settings.config_file import ConfigFile, read
from tests.unit.builders import config_file, problems_of


def values(file: ConfigFile) -> dict[str, object]:
    return {name: entry.value for name, entry in file.entries.items()}


def test_nested_and_flat_keys_say_the_same(tmp_path: Path) -> None:
    flat = values(read(config_file(tmp_path, "nvidia-memory-factor: 8\nnode_name: a")))
    nested = values(read(config_file(tmp_path, "nvidia: {memory: {factor: 8}}\nnode: {name: a}")))
    assert flat == nested == {"nvidia-memory-factor": 8, "node-name": "a"}


def test_an_entry_knows_its_place_as_it_was_written(tmp_path: Path) -> None:
    file = read(
        config_file(tmp_path, "nvidia: {memory_factor: 8}\nnodes: [{match: a, mlu: {cards: 1}}]")
    )
    assert file.entries["nvidia-memory-factor"].place == "nvidia.memory_factor"
    assert file.sections[0].entries["mlu-cards"].place == "nodes[0].mlu.cards"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null", "{}"])
def test_an_empty_file_says_nothing(tmp_path: Path, text: str) -> None:
    assert read(config_file(tmp_path, text)) == ConfigFile()


def test_anchors_and_merges_of_yaml_work(tmp_path: Path) -> None:
    text = """
    nvidia: &big {cards: 8, model: T4}
    nodes:
      - match: a
        nvidia:
          <<: *big
          cards: 4
    """
    (section,) = read(config_file(tmp_path, text)).sections
    found = {name: entry.value for name, entry in section.entries.items()}
    assert found == {"nvidia-cards": 4, "nvidia-model": "T4"}


def test_a_section_can_stand_twice_by_alias(tmp_path: Path) -> None:
    text = "nodes: [&s {match: a, mlu-cards: 1}, *s]"
    assert len(read(config_file(tmp_path, text)).sections) == 2


def test_the_first_section_that_matches_counts(tmp_path: Path) -> None:
    text = """
    nodes:
      - {match: gpu-1, nvidia-cards: 1}
      - {match: [gpu-*, "mixed-[ab]"], nvidia-cards: 2}
      - {match: "*", nvidia-cards: 3}
    """
    file = read(config_file(tmp_path, text))

    def chosen(node: str) -> object:
        section = file.section_of(node)
        return section and section.entries["nvidia-cards"].value

    assert [chosen(node) for node in ("gpu-1", "gpu-10", "mixed-b", "mixed-c", "GPU-1")] == [
        1, 2, 2, 3, 3,
    ]  # fmt: skip


def test_no_section_may_match(tmp_path: Path) -> None:
    file = read(config_file(tmp_path, "nodes: [{match: gpu-*}]"))
    assert file.section_of("cpu-1") is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("[1, 2]", ["must be a mapping of options, not a list"], id="a list"),
        pytest.param("just words", ["must be a mapping", "'just words'"], id="a string"),
        pytest.param("a: b: c", ["not valid YAML", "line 1"], id="colon in a value"),
        pytest.param("a: [1", ["not valid YAML"], id="open bracket"),
        pytest.param("\ta: 1", ["not valid YAML"], id="a tab"),
        pytest.param("a: 1\na: 2", ["the key 'a' appears twice", "line 2"], id="a key twice"),
        pytest.param("x: {a: 1, a: 2}", ["the key 'a' appears twice"], id="an inner key twice"),
        pytest.param(
            "nvidia-cards: 1\nnvidia: {cards: 2}",
            ["nvidia.cards: sets the same option as nvidia-cards: keep one"],
            id="nested and flat",
        ),
        pytest.param(
            "nvidia-cards: 1\nnvidia_cards: 2",
            ["nvidia_cards: sets the same option as nvidia-cards: keep one"],
            id="dash and underscore",
        ),
        pytest.param("nodes: 5", ["nodes: must be a list of sections, not 5"], id="nodes a number"),
        pytest.param("nodes: {match: a}", ["nodes: must be a list"], id="nodes a mapping"),
        pytest.param("nodes: [5]", ["nodes[0]: must be a mapping with the key match"], id="node 5"),
        pytest.param("nodes: [{mlu-cards: 1}]", ["nodes[0]: must be a mapping"], id="no match"),
        pytest.param("nodes: [{match: 5}]", ["nodes[0].match: [5] must be a glob"], id="match 5"),
        pytest.param("nodes: [{match: }]", ["nodes[0].match: [None] must be"], id="match nothing"),
        pytest.param("nodes: [{match: []}]", ["nodes[0].match: [] must be"], id="match no globs"),
        pytest.param("nodes: [{match: ['']}]", ["nodes[0].match: [''] must be"], id="empty glob"),
        pytest.param("a: {{ .Values.cards }}", ["not valid YAML"], id="a Helm template"),
        pytest.param("? [a, b]\n: c", ["not valid YAML"], id="a list as a key"),
        pytest.param("a: 2024-13-45", ["not valid YAML"], id="a day that is none"),
        pytest.param("a: !!int x", ["not valid YAML"], id="a tagged word"),
        pytest.param("a: !!bool x", ["not valid YAML"], id="a tagged truth"),
        pytest.param("a: !!timestamp x", ["not valid YAML"], id="a tagged day"),
        pytest.param("a: !!python/object:os.system x", ["not valid YAML"], id="a Python object"),
        pytest.param("a: 0x_", ["not valid YAML"], id="a hex number without digits"),
        pytest.param("nvidia: &n {cards: *n}", [], id="a mapping in itself"),
        pytest.param("a: \x07", ["not valid YAML"], id="a control character"),
        pytest.param(b"a: \xff\xfe", ["can't read", "not UTF-8"], id="not UTF-8"),
    ],
)
def test_a_file_of_bad_form_is_an_error_that_names_the_file(
    tmp_path: Path, text: str | bytes, parts: list[str]
) -> None:
    path = config_file(tmp_path, text)
    (line,) = problems_of(lambda: read(path))
    assert path in line
    assert "\n" not in line
    assert all(part in line for part in parts)


@pytest.mark.parametrize(
    ("name", "reason"), [("missing", "No such file"), (".", "Is a directory"), ("x/y", "No such")]
)
def test_a_file_that_can_not_be_read_is_an_error(tmp_path: Path, name: str, reason: str) -> None:
    path = str(tmp_path / name)
    (line,) = problems_of(lambda: read(path))
    assert line.startswith(f"--config: can't read {path!r}: {reason}")


def test_all_mistakes_of_form_get_a_line(tmp_path: Path) -> None:
    text = "nodes: [5, {match: 5}]\nnvidia-cards: 1\nnvidia: {cards: 2}"
    assert len(problems_of(lambda: read(config_file(tmp_path, text)))) == 3


yaml_like = st.lists(
    st.sampled_from(
        ["a", "b", "nodes", "match", ": ", ":", "- ", "\n", "\n  ", "{", "}", "[", "]", ", ", "? ",
         "&x ", "*x", "<<", "!!int ", "!!float ", "!!timestamp ", "!!set ", "!!omap ", "!!binary ",
         "1", "1.5", "2024-99-99", "0x", "'", '"', "#", "|", ">", "%", "@", "~", "---\n", "\t"]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=yaml_like)
def test_whatever_a_file_says_it_is_read_or_refused_in_lines(tmp_path: Path, text: str) -> None:
    path = config_file(tmp_path, text)
    problems: tuple[str, ...] = ()
    try:
        read(path)
    except UsageError as error:
        problems = error.problems
    assert all(path in line and "\n" not in line for line in problems)
