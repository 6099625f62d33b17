"""Write requirements/*.txt: every version, with hashes, no address."""

import subprocess
import sys
from pathlib import Path

COMPILE = [
    str(Path(sys.executable).with_name("uv")),
    "pip",
    "compile",
    "--quiet",
    "--upgrade",
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-annotate",
    "--custom-compile-command=make lock",
]
SOURCES = {
    "run": ["pyproject.toml"],
    "build": ["--group=build"],
    "dev": ["pyproject.toml", "--extra=whatif", "--group=dev"],
    "go": ["--group=go"],
    "browser": ["--group=browser"],
    "driver": ["--group=driver"],
    "native": ["--group=native"],
    "judges": ["--group=judges"],
}

for name, sources in SOURCES.items():
    subprocess.run([*COMPILE, *sources, f"--output-file=requirements/{name}.txt"], check=True)  # noqa: S603
