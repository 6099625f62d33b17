"""How tests run an nvidia-smi, and read what it prints."""

import csv
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Smi:
    """A program, ours or the real one, with what it needs in its environment."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> tuple[int, str]:
        """Return its exit code and all that it prints."""
        done = subprocess.run(
            [self.path, *arguments],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            env={**os.environ, **self.environment},
        )
        return done.returncode, done.stdout

    def ask(self, *arguments: str) -> str:
        code, text = self.run(*arguments)
        assert code == 0, text
        return text

    def query(self, fields: str, *arguments: str) -> list[list[str]]:
        """Return the rows of --query-gpu, split as programs do."""
        text = self.ask(f"--query-gpu={fields}", "--format=csv,noheader,nounits", *arguments)
        return list(csv.reader(text.splitlines(), skipinitialspace=True))


def details(text: str) -> list[dict[str, str]]:
    """Read what -q prints: of each card, values by the labels that lead to them."""
    cards: list[dict[str, str]] = []
    path: list[str] = []
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        if re.match(r"GPU [0-9A-F]{8}:", line):
            cards.append({"": line.removeprefix("GPU ")})
        elif depth and cards:
            label, _, value = line.partition(" : ") if " : " in line else (line, "", "")
            path[depth - 1 :] = [label.strip()]
            # A label that comes again, such as that of a second process, is numbered.
            name = unnumbered = "/".join(path)
            again = 1
            while value and name in cards[-1]:
                again += 1
                name = f"{unnumbered} {again}"
            if value:
                cards[-1][name] = value
    return cards
