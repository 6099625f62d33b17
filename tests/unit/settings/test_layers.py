from collections.abc import Callable
from typing import TypeVar

import pytest

from hami_mock.kit.values import not_allowed
from hami_mock.settings.card_groups import card_groups
from hami_mock.settings.layers import (
    Entry,
    Layer,
    Merged,
    environment_layer,
    file_layer,
    strongest,
    text_layer,
)
from tests.makers import NVIDIA

FILE = "/etc/hami-mock.yaml"
T = TypeVar("T")


def layer(place: str = "here", **values: object) -> Layer:
    return {
        name.replace("_", "-"): Entry(value, f"{place}: {name}") for name, value in values.items()
    }


def fine(function: Callable[[list[str]], T]) -> T:
    """What a call returns that must find no problems."""
    problems: list[str] = []
    found = function(problems)
    assert problems == []
    return found


def merged(*layers: Layer) -> Merged:
    return fine(lambda problems: Merged(layers, problems))


def test_a_flag_remembers_how_it_was_written() -> None:
    found = fine(lambda problems: text_layer({"nvidia-cards": "3"}, "--", problems))
    assert found == {"nvidia-cards": Entry("3", "--nvidia-cards")}


def test_an_alias_becomes_its_option_and_keeps_its_place() -> None:
    found = fine(lambda problems: text_layer({"mlu-resource-memory-name": "a/b"}, "--", problems))
    assert found == {"ascend-resource-memory-name": Entry("a/b", "--mlu-resource-memory-name")}


def test_an_option_and_its_alias_in_one_layer_are_an_error() -> None:
    entries = {
        "ascend-resource-memory-name": Entry("a/b", "one"),
        "mlu-resource-memory-name": Entry("c/d", "two"),
    }
    problems: list[str] = []
    file_layer(FILE, entries, problems)
    assert problems == [f"{FILE}: two: sets the same option as {FILE}: one: keep one"]


def test_variables_become_options() -> None:
    environ = {"HAMI_MOCK_NVIDIA_CARDS": "3", "PATH": "/bin", "HAMI_MOCKING": "x"}
    found = fine(lambda problems: environment_layer(environ, problems, problems))
    assert found == {"nvidia-cards": Entry("3", "HAMI_MOCK_NVIDIA_CARDS")}


def test_an_alias_is_a_variable_too() -> None:
    name = "HAMI_MOCK_MLU_RESOURCE_MEMORY_NAME"
    found = fine(lambda problems: environment_layer({name: "a/b"}, problems, problems))
    assert found == {"ascend-resource-memory-name": Entry("a/b", name)}


@pytest.mark.parametrize(
    "name",
    ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR",
     "PORT_80_TCP_PORT", "PORT_80_TCP_PROTO", "PORT_53_UDP", "PORT_7_SCTP_ADDR",
     "METRICS_SERVICE_HOST", "METRICS_PORT", "METRICS_PORT_9396_TCP_ADDR"],
)  # fmt: skip
def test_what_kubernetes_sets_for_a_service_is_no_mistake(name: str) -> None:
    environ = {f"HAMI_MOCK_{name}": "10.0.0.1"}
    assert fine(lambda problems: environment_layer(environ, problems, problems)) == {}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("HAMI_MOCK_NVIDIA_CARD", "HAMI_MOCK_NVIDIA_CARDS"),
        ("HAMI_MOCK_nvidia_cards", "HAMI_MOCK_NVIDIA_CARDS"),
        ("HAMI_MOCK_HTTP_LISTENS", "HAMI_MOCK_HTTP_LISTEN"),
    ],
)
def test_a_variable_that_is_almost_one_of_ours_is_a_problem(name: str, meant: str) -> None:
    problems: list[str] = []
    warnings: list[str] = []
    assert environment_layer({name: "1"}, problems, warnings) == {}
    assert problems == [f"{name}: there is no such variable; did you mean {meant}?"]
    assert warnings == []


@pytest.mark.parametrize("name", ["IMAGE", "TAG", "QQQQ", "", "VERSION", "CHART_VERSION"])
def test_a_variable_of_somebody_else_is_a_warning(name: str) -> None:
    problems: list[str] = []
    warnings: list[str] = []
    assert environment_layer({f"HAMI_MOCK_{name}": "1"}, problems, warnings) == {}
    assert problems == []
    assert warnings == [f"HAMI_MOCK_{name}: there is no such variable; ignoring it"]


def test_each_unknown_variable_gets_a_line_and_the_others_count() -> None:
    problems: list[str] = []
    environ = {"HAMI_MOCK_B": "", "HAMI_MOCK_MLU_CARDS": "1", "HAMI_MOCK_A": ""}
    assert list(environment_layer(environ, [], problems)) == ["mlu-cards"]
    assert [line.partition(":")[0] for line in problems] == ["HAMI_MOCK_A", "HAMI_MOCK_B"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nvidia-card", "nvidia-cards"),
        ("ascend-group", "ascend-groups"),
        ("sockt-dir", "socket-dir"),
    ],
)
def test_an_unknown_key_is_a_problem_with_a_hint(name: str, hint: str) -> None:
    problems: list[str] = []
    entries = {name: Entry(1, "a.b"), "mlu-cards": Entry(1, "c")}
    assert list(file_layer(FILE, entries, problems)) == ["mlu-cards"]
    assert problems == [f"{FILE}: a.b: there is no such key; did you mean {hint}?"]


def test_a_file_can_not_name_another_file() -> None:
    problems: list[str] = []
    assert file_layer(FILE, {"config": Entry("x", "config")}, problems) == {}
    assert problems == [f"{FILE}: config: there is no such key"]


def test_the_entries_of_a_file_know_their_file() -> None:
    entries = {"nvidia-cards": Entry(3, "nvidia.cards")}
    found = fine(lambda problems: file_layer(FILE, entries, problems))
    assert found == {"nvidia-cards": Entry(3, f"{FILE}: nvidia.cards", is_in_file=True)}


def test_the_last_layer_is_the_strongest() -> None:
    layers = [layer(node_name="a"), layer(node_name="b"), layer()]
    assert strongest("node-name", layers) == "b"
    assert strongest("config", layers) is None


TWO_LAYERS = (layer("weak", nvidia_cards=1, mlu_cards=5), layer("strong", nvidia_cards="4"))


def test_merged_values_are_those_of_the_strongest_layer_and_the_defaults() -> None:
    values = merged(*TWO_LAYERS)
    assert values["nvidia-cards"] == 4
    assert values["mlu-cards"] == 5
    assert values["ascend-cards"] == 2
    assert values["config"] is None
    assert values["nvidia-groups"] is None


def test_merged_knows_where_a_value_comes_from() -> None:
    values = merged(*TWO_LAYERS)
    assert [values.rank(f"{key}-cards") for key in ("nvidia", "mlu", "ascend")] == [1, 0, -1]
    assert values.place("nvidia-cards") == "strong: nvidia_cards"
    assert values.place("mlu-cards") == "weak: mlu_cards"
    assert values.place("ascend-cards") == "--ascend-cards"


def test_each_bad_value_gets_one_line_and_the_default_stands_in() -> None:
    problems: list[str] = []
    bad = layer(nvidia_cards="x", nvidia_memory_factor="y", mlu_cards=-1, ascend_cards=7)
    values = Merged([bad], problems)
    assert sorted(problems) == [
        "here: mlu_cards: -1 is not allowed: it must be a whole number from 0 to 128",
        "here: nvidia_cards: 'x' is not allowed: it must be a whole number from 0 to 128",
        "here: nvidia_memory_factor: 'y' is not allowed: it must be a whole number from 1 to "
        "1048576, or auto",
    ]
    assert [values[f"{key}-cards"] for key in ("nvidia", "mlu", "ascend")] == [2, 2, 7]


def test_a_bad_value_that_a_stronger_layer_covers_is_no_mistake() -> None:
    assert merged(layer(nvidia_cards="x"), layer(nvidia_cards="1"))["nvidia-cards"] == 1


@pytest.mark.parametrize(
    ("groups", "line"),
    [
        (5, "f: 5 is not allowed: it must be a list of groups"),
        ({"cards": 1}, "f: {'cards': 1} is not allowed: it must be a list of groups"),
        ([5], "f[0]: 5 is not allowed: it must be a mapping such as"),
        ([{}, None], "f[1]: None is not allowed: it must be a mapping such as"),
        ([{"cards": 0}], "f[0].cards: 0 is not allowed: it must be a whole number from 1 to 128"),
        ([{"cards": True}], "f[0].cards: True is not allowed"),
        ([{"memory": "x"}], "f[0].memory: 'x' is not allowed"),
        ([{"model": 7}], "f[0].model: 7 is not allowed: it must be the name of a card model"),
        ([{"numa": "x"}], "f[0].numa: 'x' is not allowed: it must be a NUMA node from 0 to 63"),
        ([{"numa": True}], "f[0].numa: True is not allowed"),
        ([{"nvlink": [[True, False]]}], "f[0].nvlink"),
        ([{"nvlink": 3}], "f[0].nvlink: 3 is not allowed: it must be lists of card positions"),
        ([{"nvlink": [0, 1]}], "f[0].nvlink"),
        ([{"modle": "T4"}], "f[0].modle: there is no such key; did you mean model?"),
        ([{"qqq": 1}], "f[0].qqq: there is no such key"),
    ],
)
def test_a_mistake_in_a_group_is_named_with_its_place(groups: object, line: str) -> None:
    entries = {"nvidia-groups": Entry(groups, "f")}
    problems: list[str] = []
    card_groups(NVIDIA, Merged([entries], problems))
    assert len(problems) == 1
    assert problems[0].startswith(line)


def test_a_line_about_a_value_has_place_value_and_what_is_allowed() -> None:
    assert not_allowed("--x", "y", "a z") == "--x: 'y' is not allowed: it must be a z"
