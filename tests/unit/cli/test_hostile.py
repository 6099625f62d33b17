"""Words and files that nobody would write: one clear line and exit code 2, and soon."""

import json
from pathlib import Path

import pytest

from hami_mock.cli.main import main
from tests.unit.doctor.patients import card, node

Captured = pytest.CaptureFixture[str]
DIGITS = "9" * 5000
LONG = "x" * 100_000
ESCAPES = "\x1b[2J\r\nhami-mock: all is well\x00\ud800"
NESTED = 100_000


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HAMI_MOCK_CONTROL_SOCKET", "/nowhere.sock")
    monkeypatch.chdir(tmp_path)


def complaint(captured: Captured, *words: str) -> str:
    """Run the program, and return the line that it says, or the first of two."""
    assert main(list(words)) == 2
    out, err = captured.readouterr()
    assert out == ""
    lines = err.removesuffix("\n").split("\n")
    assert len(lines) <= 2
    for line in lines:
        assert line.startswith("hami-mock: ")
        assert line.isprintable()
        assert len(line) < 5000
        assert "internal error" not in line
    return lines[0]


@pytest.mark.parametrize("word", [DIGITS, LONG, ESCAPES, "-" + LONG, "--" + ESCAPES, f"--x={LONG}"])
@pytest.mark.parametrize(
    "command",
    [
        [],
        ["plan"],
        ["plan", "--nvidia-cards"],
        ["plan", "--config"],
        ["plan", "--node-name"],
        ["plan", "-o"],
        ["plan", "-f"],
        ["models"],
        ["doctor", "-f"],
        ["doctor", "--device-config-file"],
        ["scenario"],
        ["scenario", "check"],
        ["scenario", "check", "x", "--until"],
        ["schema"],
        ["completion"],
        ["ctl"],
        ["ctl", "scenario"],
        ["ctl", "scenario", "play"],
        ["ctl", "set"],
        ["ctl", "set", "cards"],
        ["ctl", "fail", "nvidia/0", "--xid"],
        ["ctl", "fail", "nvidia/0", "--for"],
        ["ctl", "events", "--since"],
    ],
    ids=" ".join,
)
def test_a_word_that_nobody_would_write(command: list[str], word: str, capsys: Captured) -> None:
    complaint(capsys, *command, word)


@pytest.mark.parametrize("word", [DIGITS, LONG])
def test_a_word_for_the_agents_of_go_is_not_taken_for_a_level(word: str, capsys: Captured) -> None:
    assert main(["plan", "-v", word, "--nvidia-cards", "1", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["resources"]


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "Node", "metadata": ' + DIGITS,
        '{"kind": "Node", "status": {"capacity": {"cpu": ' + DIGITS + "}}}",
        '{"kind": ' * NESTED,
        LONG,
        ESCAPES.replace("\ud800", ""),
        json.dumps({"kind": LONG}),
        json.dumps({"kind": ESCAPES}),
        json.dumps({"kind": "List", "items": [{"kind": LONG}]}),
        "kind: Node\nkind: Node",
        "kind: Node\nmetadata: 2026-99-99",
        "a: &a [1]\nb: *c",
        "\x00",
        "",
    ],
    ids=range(13),
)
@pytest.mark.parametrize("command", ["doctor", "plan"])
def test_a_file_that_nobody_would_write(
    command: str, text: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    line = complaint(capsys, command, "-f", str(path))
    assert str(path) in line
    complaint(capsys, command, "--device-config-file", str(path))


def test_a_file_without_end(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("hami_mock.doctor.gathering.MOST_CHARACTERS", 1000)
    for command in ("doctor", "plan"):
        line = complaint(capsys, command, "-f", "/dev/zero")
        assert line.endswith("/dev/zero: has more than 1000 characters")
    line = complaint(capsys, "ctl", "scenario", "play", "/dev/zero")
    assert line.endswith("'/dev/zero': it has more than 1048576 bytes: shorten it")


def test_lists_in_lists_in_lists(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "x").write_text('{"kind": "List", "items": [' * NESTED)
    assert complaint(capsys, "doctor", "-f", "x").endswith("is nested too deeply")


def test_the_names_of_what_is_examined_are_one_line_too(tmp_path: Path, capsys: Captured) -> None:
    strange = node()
    strange["metadata"]["name"] = ESCAPES + LONG
    (tmp_path / "x").write_text(json.dumps(strange))
    assert main(["doctor", "-f", "x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Node \\x1b[2J\\r\\nhami-mock")
    assert all(line.isprintable() and len(line) < 5000 for line in lines)
    assert "--node-name" in complaint(capsys, "plan", "-f", "x")


@pytest.mark.parametrize("key", ["id", "type"])
def test_what_a_card_is_called_is_one_line_too(key: str, tmp_path: Path, capsys: Captured) -> None:
    # Half of a surrogate pair is no text of HAMi's at all.
    strange = card("GPU-1", **{key: f"NVIDIA-{ESCAPES.removesuffix(chr(0xD800))}{LONG}"})
    (tmp_path / "x").write_text(json.dumps(node(strange)))
    assert main(["plan", "-f", "x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "NVIDIA-\\x1b[2J\\r\\nhami-mock" in lines[3]
    assert all(line.isprintable() and len(line) < 5000 for line in lines)
    assert main(["plan", "-f", "x", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["cards"]) == 1
