import io
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from hami_mock import __version__, agent
from hami_mock.cli import models
from hami_mock.cli.commands import COMMANDS
from hami_mock.cli.flags import OF_CARDS
from hami_mock.cli.main import main
from hami_mock.errors import HamiMockError, StartError
from hami_mock.settings.options import OPTIONS
from hami_mock.settings.settings import Settings
from hami_mock.vendors import VENDORS
from tests.unit.builders import config_file

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings that the agent would have been started with."""
    found: list[Settings] = []

    async def run(settings: Settings, flags: dict[str, str]) -> None:
        found.append(settings)

    monkeypatch.setattr(agent, "run", run)
    return found


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    async def run(settings: Settings, flags: dict[str, str]) -> None:
        raise error

    monkeypatch.setattr(agent, "run", run)


def test_version(capsys: Captured) -> None:
    for arguments in (["version"], ["--version"], ["-version"]):
        assert main(arguments) == 0
        assert capsys.readouterr().out == f"hami-mock {__version__}\n"


@pytest.mark.parametrize("argument", ["-h", "--help", "-help", "help"])
def test_help_lists_the_commands(argument: str, capsys: Captured) -> None:
    assert main([argument]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and text in out for name, text in COMMANDS.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: Captured) -> None:
    try:
        code = main([command, "--help"])
    except SystemExit as ended:
        code = ended.code  # type: ignore[assignment]
    assert code == 0
    out = capsys.readouterr().out
    assert f"usage: hami-mock {command}" in out
    assert [line for line in out.splitlines() if line != line.rstrip()] == []
    flags = {f"--{option.name}" for option in OPTIONS}
    shown = {flag for flag in flags if re.search(rf"^ +{flag} ", out, re.MULTILINE)}
    everything = command in ("run", "plan", "demo", "scenario")
    # Flags that these have, too.
    socket = {"--control-socket"}
    of_cards = flags & {f"--{name}" for name in OF_CARDS}
    others = {
        "doctor": {"--device-config-file"},
        "whatif": {"--seed"},
        "driver": of_cards | {"--driver-root", "--driver-version"},
        "smi": of_cards | {"--driver-version"} | socket,
    }
    own = {"ctl": socket, "top": socket, **others}.get(command, set())
    is_whole = everything or command in ("driver", "smi")
    assert shown == ((flags if everything else own) if is_whole else shown & own)


@pytest.mark.parametrize(
    ("arguments", "cards"),
    [
        ([], 2),
        (["run"], 2),
        (["-v=4"], 2),
        (["--nvidia-cards=3"], 3),
        (["run", "-nvidia_cards", "3"], 3),
    ],
)
def test_run_is_the_default_command(
    arguments: list[str], cards: int, started: list[Settings]
) -> None:
    assert main(arguments) == 0
    (settings,) = started
    assert settings.vendors[0].groups[0].cards == cards


def test_arguments_come_from_the_command_line_by_default(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.argv", ["hami-mock", "version"])
    assert main() == 0
    assert __version__ in capsys.readouterr().out


def test_plan_in_every_output_says_the_same(capsys: Captured) -> None:
    outputs = {}
    for output in ("json", "yaml", "table"):
        assert main(["plan", f"-output={output}", "--nvidia-cards", "4"]) == 0
        outputs[output] = capsys.readouterr().out
    plan = json.loads(outputs["json"])
    assert yaml.safe_load(outputs["yaml"]) == plan
    assert all(f"{row['resource']} " in outputs["table"] for row in plan["resources"])
    assert all(card["uuid"] in outputs["table"] for card in plan["cards"])
    assert "131072" in outputs["table"]


def test_plan_prints_a_table_with_its_warnings_and_nothing_on_stderr(capsys: Captured) -> None:
    assert main(["plan", "--node-name", "node-a", "--units", "plugin"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Node node-a would carry:\n\nCARD ")
    assert "warning: nvidia.com/gpumem: 65536 " in captured.out
    assert "\x1b" not in captured.out
    assert captured.err == ""


FLEET = """\
mlu-cards: 0
nodes:
- match: [gpu-*, a100-*]
  nvidia:
    groups:
    - {cards: 3, model: A100-SXM4-80GB, numa: [0, 0, 1], nvlink: [[0, 1]]}
    - {cards: 1, model: T4}
- {match: solo, nvidia-cards: 0}
"""


@pytest.mark.parametrize(
    ("node", "key", "cards"), [("gpu-7", "nodes[0]", 4), ("solo", "nodes[1]", 0), ("x", "", 2)]
)
def test_plan_names_the_section_of_the_file(
    node: str, key: str, cards: int, tmp_path: Path, capsys: Captured
) -> None:
    file = config_file(tmp_path, FLEET)
    assert main(["plan", "--config", file, "--node-name", node, "-o", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["section"] or {"key": ""})["key"] == key
    assert sum(card["name"].startswith("nvidia") for card in plan["cards"]) == cards
    assert main(["plan", "--config", file, "--node-name", node]) == 0
    assert (f"{file}: {key}: " in capsys.readouterr().out) == bool(key)


def test_plan_shows_the_whole_fleet(tmp_path: Path, capsys: Captured) -> None:
    file = config_file(tmp_path, FLEET)
    # Whichever node it is asked on.
    for node in ("gpu-7", "solo", "x"):
        words = ["plan", "--config", file, "--all-nodes", "--node-name", node]
        assert main([*words, "-o", "json"]) == 0
        plans = json.loads(capsys.readouterr().out)
        assert [(plan["section"] or {}).get("match") for plan in plans] == [
            ["gpu-*", "a100-*"], ["solo"], None
        ]  # fmt: skip
        assert [plan["node"] for plan in plans] == [None, "solo", None]
        nvidia = [[c for c in plan["cards"] if c["name"].startswith("nvidia")] for plan in plans]
        assert [len(cards) for cards in nvidia] == [4, 0, 2]
        assert nvidia[0][0]["links"] == ["nvidia/1"]
        assert main(words) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[:4] == [
            f"{file}: nodes[0]: gpu-*, a100-*",
            "CARDS  VENDOR    MODEL           MEMORY MiB  NUMA   LINKS",
            "    3  nvidia    A100-SXM4-80GB       81920  0 0 1  0 1",
            "    1  nvidia    T4                   15360  -      -",
        ]
        assert f"{file}: nodes[1]: solo" in lines
        assert "all other nodes" in lines


def test_a_section_for_all_nodes_leaves_no_others(tmp_path: Path, capsys: Captured) -> None:
    file = config_file(tmp_path, "nodes: [{match: gpu-1}, {match: '*'}]")
    assert main(["plan", "--config", file, "--all-nodes", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_fleet_without_sections_is_a_mistake(capsys: Captured) -> None:
    assert main(["plan", "--all-nodes"]) == 2
    assert "there are no sections" in capsys.readouterr().err


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_models(output: str, read: Callable[[str], Any], capsys: Captured) -> None:
    assert main(["models", "-o", output]) == 0
    rows = read(capsys.readouterr().out)
    keys = {"vendor", "maker", "name", "product", "memory", "cores", "family", "compute", "power"}
    assert set(rows[0]) == {*keys, "chip"}
    assert {row["vendor"] for row in rows} == {vendor.prefix for vendor in VENDORS}
    assert len(rows) >= 14 + 5 + 4 + 7


def test_models_as_a_table(capsys: Captured) -> None:
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("VENDOR")
    assert any(line.split()[:2] == ["ascend", "Ascend910B3"] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["begin"], f"'begin' is not a command: use one of {', '.join(COMMANDS)}"),
        (["Plan"], "'Plan' is not a command"),
        (["plan", "--nvidia-card", "1"], "did you mean --nvidia-cards?"),
        (["plan", "-o", "xml"], "-o/--output: 'xml' is not allowed: it must be one of table,"),
        (["plan", "-o"], "-o/--output: expected one argument"),
        (["schema"], "schema: the following arguments are required: config|scenario"),
        (["completion"], "the following arguments are required: bash|zsh|fish"),
        (["models", "--nvidia-cards=1"], "--nvidia-cards: there is no such flag"),
        (["version", "now"], "'now' is not expected here"),
        (["plan", "--nvidia-cards", "-1"], "--nvidia-cards: '-1' is not allowed"),
        (["--nvidia-cards", "many"], "--nvidia-cards: 'many' is not allowed"),
        (["demo", "--nvidia-cards", "x"], "--nvidia-cards: 'x' is not allowed"),
        (["plan", "--config", "/nowhere"], "--config: can't read '/nowhere'"),
        (
            ["plan", "--units=plugin", "--nvidia-cards=128"],
            "nvidia.com/gpumem: 4194304 devices need a list of",
        ),
        (["run", "--nvidia-cards", "128"], "the smallest memory factor that fits is 16"),
        (["plan", "--keep"], "--keep: there is no such flag"),
        (["plan", "-v=--"], "-v: '--' is not allowed: it must be a value"),
        (["doctor", "-f=--"], "-f: '--' is not allowed: it must be a value"),
        (["plan", "--node_name=--"], "--node-name: '--' is not allowed: it must be a value"),
        (
            ["plan", "--mlu-resource-memory-name", "a b"],
            "--mlu-resource-memory-name: 'a b' is not allowed",
        ),
    ],
)
def test_bad_input_is_a_line_on_stderr_and_exit_code_2(
    arguments: list[str], line: str, capsys: Captured
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hami-mock: ")
    assert line in captured.err
    assert captured.err.count("\n") >= 1
    assert "Traceback" not in captured.err


def test_each_mistake_is_a_line_of_its_own(capsys: Captured) -> None:
    assert main(["plan", "--nvidia-cards", "x", "--mlu-cards", "y"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[:2] for line in lines] == [
        ["hami-mock", " --nvidia-cards"],
        ["hami-mock", " --mlu-cards"],
    ]


@pytest.mark.parametrize(
    "text",
    ["nvidia-cards: x", "[", "a: {{ b }}", "nvidia: &n {a: *n}", "a: 2024-99-99",
     "nodes: [{match: zz, nvidia: {cards: x}}]"],
)  # fmt: skip
def test_no_file_gets_a_traceback_out_of_it(text: str, tmp_path: Path, capsys: Captured) -> None:
    assert main(["plan", "--config", config_file(tmp_path, text)]) == 2
    assert "config.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        StartError("no port"),
        ExceptionGroup("", [StartError("no port")]),
        ExceptionGroup("", [ExceptionGroup("", [StartError("no port"), HamiMockError("x")])]),
    ],
    ids=["alone", "in a group", "in groups of groups"],
)
def test_a_machine_that_can_not_serve_us_is_exit_code_1(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    fail_with(monkeypatch, error)
    assert main(["run"]) == 1
    assert capsys.readouterr().err == "hami-mock: no port\n"


def test_an_error_that_nobody_foresaw_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    fail_with(monkeypatch, ZeroDivisionError("of no avail"))
    assert main(["run"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("hami-mock: internal error")
    assert "ZeroDivisionError: of no avail" in err
    assert "Traceback" not in err


def test_at_debug_an_error_that_nobody_foresaw_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    fail_with(monkeypatch, ZeroDivisionError("of no avail"))
    assert main(["run", "--log-level", "debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_each_command_says_so_at_the_word_of_a_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def broken(_: list[str]) -> int:
        raise ZeroDivisionError("of no avail")

    monkeypatch.setattr(models, "run", broken)
    assert main(["models"]) == 1
    assert "(HAMI_MOCK_LOG_LEVEL=debug shows where)" in capsys.readouterr().err
    monkeypatch.setenv("HAMI_MOCK_LOG_LEVEL", "debug")
    assert main(["models"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "run", interrupted)
    assert main(["models"]) == 130


def test_a_reader_that_went_away_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", broken)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert main(["version"]) == 0


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_example_can_be_copied(command: str, capsys: Captured) -> None:
    with suppress(SystemExit):
        main([*command.split(), "--help"])
    _, _, rest = capsys.readouterr().out.partition("examples:\n")
    examples = rest.partition("\n\n")[0].replace(" \\\n      ", " ").splitlines()
    assert examples or command == "version"
    assert [line for line in examples if "hami-mock " not in line] == []
