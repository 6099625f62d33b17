"""The completion scripts, in the shells that they are for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.agents import run_cli

CASES = [
    ("hami-mock pl", {"plan"}),
    ("hami-mock help sc", {"scenario", "schema"}),
    ("hami-mock completion ", {"bash", "zsh", "fish"}),
    ("hami-mock plan --all", {"--all-nodes"}),
    ("hami-mock --nvidia-c", {"--nvidia-cards", "--nvidia-core-scaling"}),
    ("hami-mock run --log-level ", {"debug", "info", "warning", "error"}),
    ("hami-mock run --log-level=w", {"warning"}),
    ("hami-mock run --hami o", {"on", "off"}),
    ("hami-mock demo --mlu-model MLU59", {"MLU590"}),
    ("hami-mock plan -o ", {"table", "json", "yaml"}),
    ("hami-mock models hyg", {"hygon"}),
    ("hami-mock run --nvidia-cards ", set()),
    ("hami-mock ctl dow", {"down"}),
    ("hami-mock ctl scenario s", {"stop", "status"}),
    ("hami-mock ctl --control-socket /x fail --rea", {"--reason"}),
    ("hami-mock ctl fail nvid", {"nvidia"}),
    ("hami-mock ctl delay allo", {"allocate"}),
    ("hami-mock ctl set seed", {"seed="}),
    ("hami-mock init -o f", {"fleet.yaml"}),
    ("hami-mock plan --config fl", {"fleet.yaml"}),
    ("hami-mock plan --config=fl", {"fleet.yaml"}),
    ("hami-mock --config fl", {"fleet.yaml"}),
    ("hami-mock ctl set --res", {"--reset"}),
    ("hami-mock help ctl ", set()),
]

BASH = r"""
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
# As readline takes a line apart.
line=${2//=/ = }
read -ra COMP_WORDS <<< "$line"
[[ $2 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_hami_mock
printf '%s\n' "${COMPREPLY[@]}"
"""

ZSH = r"""
autoload -Uz compinit && compinit -u
compadd() { print -rl -- "${@[$(( ${@[(i)--]} + 1 )),-1]}" }
_files() { print -rl -- $PREFIX*(N) }
compset() { PREFIX=${PREFIX#*=} }
source "$1"
words=("${(@s: :)2}") CURRENT=${#words} PREFIX=${words[-1]}
_hami_mock | grep -- "^${PREFIX#*=}"
"""

FISH = r"""source $argv[1]; complete -C "$argv[2]" """

SHELLS = {
    "bash": ["bash", "-c", BASH, "bash"],
    "zsh": ["zsh", "-f", "-c", ZSH, "zsh"],
    "fish": ["fish", "--no-config", "-c", FISH],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "files").mkdir()
    (folder / "files" / "fleet.yaml").touch()
    program = folder / "bin" / "hami-mock"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hami_mock "$@"\n')
    program.chmod(0o755)
    for shell in SHELLS:
        done = run_cli("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / shell).write_text(done.stdout)
    return folder


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_a_shell_completes_a_line(shell: str, line: str, expected: set[str], folder: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run(
        [*SHELLS[shell], str(folder / shell), line],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=folder / "files",
        env={
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "HOME": str(folder),
        },
    )
    assert done.stderr == ""
    found = {word.partition("\t")[0] for word in done.stdout.splitlines() if word}
    # fish gives the whole word back.
    found = {word.rpartition("=")[2] or word for word in found}
    assert found == expected
