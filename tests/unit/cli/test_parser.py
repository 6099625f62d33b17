import pytest

from hami_mock.cli.flags import flag_values, normalise, options_parser
from hami_mock.cli.parser import Parser
from hami_mock.settings.options import OPTIONS, Option
from tests.unit.builders import problems_of


def parse(*arguments: str) -> dict[str, str]:
    return flag_values(options_parser("run").parse(normalise(arguments)))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize("joint", ["=", " "])
@pytest.mark.parametrize("dash", ["-", "_"])
def test_every_option_is_a_flag_in_every_spelling(
    option: Option, dashes: str, joint: str, dash: str
) -> None:
    words = f"{dashes}{option.name.replace('-', dash)}{joint}7".split(" ")
    assert parse(*words) == {option.name: "7"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_flag_is_in_the_help_with_its_default(option: Option) -> None:
    text = " ".join(options_parser("run").format_help().split())
    assert f"--{option.name} " in text
    assert option.help in text
    if option.shown_default:
        assert f"{option.help} [{option.shown_default}]" in text


def test_no_flag_is_no_value() -> None:
    assert parse() == {}


def test_the_last_of_a_flag_given_twice_counts() -> None:
    assert parse("--nvidia-cards", "1", "--nvidia-cards", "2") == {"nvidia-cards": "2"}


def test_negative_numbers_are_values() -> None:
    assert parse("--nvidia-cards", "-1") == {"nvidia-cards": "-1"}


def test_an_empty_value_is_a_value() -> None:
    assert parse("--http-listen=") == {"http-listen": ""}


@pytest.mark.parametrize("spelling", ["-mlu-resource-memory-name", "--mlu_resource_memory_name"])
def test_the_historical_name_of_ascends_memory_is_a_flag(spelling: str) -> None:
    assert list(parse(spelling, "a/b").values()) == ["a/b"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-debug=false", "-v=2", "-logtostderr", "-alsologtostderr", "-stderrthreshold=INFO"],
        ["--debug=false", "--v=2", "--logtostderr", "--alsologtostderr"],
        ["-v", "2", "-log_dir", "/tmp", "-vmodule=a=1,b=2", "-log_backtrace_at", "a.go:1"],
        ["--log-dir=/tmp", "--log_dir=/tmp", "-logtostderr=true"],
    ],
)
def test_the_flags_of_hamis_mock_are_accepted_and_change_nothing(arguments: list[str]) -> None:
    assert parse(*arguments) == {}


@pytest.mark.parametrize(
    "arguments", [["-debug"], ["--debug"], ["-debug=true"], ["-v=4"], ["-v", "5"], ["--v=4"]]
)
def test_debug_and_v_raise_the_log_level(arguments: list[str]) -> None:
    assert parse(*arguments) == {"log-level": "debug"}


def test_the_log_level_that_was_asked_for_beats_debug_and_v() -> None:
    assert parse("-debug", "-v=9", "--log-level", "error") == {"log-level": "error"}


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("--nvidia-card=1", "--nvidia-card: there is no such flag; did you mean --nvidia-cards?"),
        ("-nvidia_card", "--nvidia-card: there is no such flag; did you mean --nvidia-cards?"),
        ("--qqqq", "--qqqq: there is no such flag; see hami-mock run --help"),
        ("--nvidia", "--nvidia: there is no such flag"),
        ("words", "'words' is not expected here; see hami-mock run --help"),
    ],
)
def test_an_unknown_flag_is_an_error_with_a_hint(argument: str, line: str) -> None:
    (found,) = problems_of(lambda: parse(argument))
    assert found.startswith(line)


def test_each_unknown_flag_gets_a_line() -> None:
    assert len(problems_of(lambda: parse("--a-b", "--c-d", "--nvidia-cards", "1"))) == 2


@pytest.mark.parametrize(
    "arguments", [["--nvidia-cards"], ["-v"], ["--config", "--nvidia-cards=1"]]
)
def test_a_flag_without_its_value_is_an_error_that_names_it(arguments: list[str]) -> None:
    (line,) = problems_of(lambda: parse(*arguments))
    assert arguments[0] in line
    assert "expected one argument" in line


def test_a_parser_without_options_knows_none() -> None:
    parser = Parser("models")
    assert "--nvidia-cards" not in parser.format_help()
    (line,) = problems_of(lambda: parser.parse(["--nvidia-cards=1"]))
    assert line.startswith("--nvidia-cards: there is no such flag")
