"""`hami-mock fleet`: its commands, their help and their examples."""

import re
import shlex
from contextlib import suppress
from pathlib import Path

import pytest

from hami_mock.cli.completion import complete
from hami_mock.cli.fleet import COMMANDS
from hami_mock.cli.fleet.dispatch import VERB_COMMANDS, commands, parser
from hami_mock.cli.main import main
from hami_mock.node.fault_kinds import VERBS

Captured = pytest.CaptureFixture[str]
WITHOUT_PROCESS = {"play", "demo", "export-kwok"}


def shown(*words: str, capsys: Captured) -> str:
    with suppress(SystemExit):
        assert main(["fleet", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--help"], ["help"]])
def test_without_a_command_it_lists_all(words: list[str], capsys: Captured) -> None:
    out = shown(*words, capsys=capsys)
    assert all(f"  {name} " in out for name in commands())


def test_all_verbs_are_there_but_for_those_between_plugin_and_kubelet() -> None:
    verbs = {verb.verb for verb in VERB_COMMANDS.values()}
    assert verbs == {*VERBS, "stop-node", "start-node"} - {"drop", "refuse"}
    assert not VERB_COMMANDS.keys() & COMMANDS.keys()


@pytest.mark.parametrize("name", [*COMMANDS, *VERB_COMMANDS])
def test_each_explains_itself_with_examples_that_work(name: str, capsys: Captured) -> None:
    out = shown(name, "--help", capsys=capsys)
    _, _, rest = out.partition("examples:\n")
    examples = rest.partition("\n\n")[0].replace(" \\\n      ", " ").splitlines()
    assert examples
    for example in examples:
        assert example.startswith(f"  hami-mock fleet {name}")
        parser(name).parse(shlex.split(example.partition(" | ")[0])[3:])
    flags = {"--name", "--control-socket", "--output"}
    assert name in WITHOUT_PROCESS or flags <= set(re.findall(r"--[a-z-]+", out))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["upp"], "fleet: 'upp' is not a command; did you mean up?"),
        (["scale", "a100"], "'a100' is not allowed: it must be POOL=NUMBER"),
        (["scale", "a=1", "a=2"], "a pool is named twice"),
        (["up", "x.yaml", "--writes", "-1"], "it must be a whole number from 0 to 100000"),
        (["up", "x.yaml", "--name", "A"], "--name: 'A' is not allowed"),
        (["down", "--name", "a b"], "--name: 'a b' is not allowed"),
        (["export-kwok", "x.yaml", "--name", "A"], "--name: 'A' is not allowed"),
        (["scenario", "play"], "fleet scenario play: name the scenario's file"),
        (["scenario", "check", "x.yaml"], "--fleet: it is missing"),
        (["fail"], "fleet fail: the following arguments are required: NODE[:CARD]"),
    ],
)
def test_mistakes_are_said(words: list[str], problem: str, capsys: Captured) -> None:
    assert main(["fleet", *words]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["fail", "all"], ["scale", "a=1"], ["scenario", "stop"]],
)
def test_without_a_process_it_says_how_to_have_one(
    words: list[str], tmp_path: Path, capsys: Captured
) -> None:
    assert main(["fleet", *words, "--control-socket", str(tmp_path / "s")]) == 1
    err = capsys.readouterr().err
    assert "no fleet 'default' runs here" in err
    assert "`hami-mock fleet up FILE`" in err


def test_a_file_without_pools_is_refused(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("hami: true\n")
    assert main(["fleet", "up", str(path)]) == 2
    assert "it has no pools" in capsys.readouterr().err


def test_a_shell_completes_its_commands_and_flags(capsys: Captured) -> None:
    complete(["fleet", ""])
    assert {line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()} == {
        *commands()
    }
    complete(["fleet", "fail", "--x"])
    assert "--xid\t" in capsys.readouterr().out
