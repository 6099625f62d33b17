"""Make dist/hami-mock, a single file that needs no Python, and prove that it works."""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import PyInstaller.__main__  # type: ignore[import-untyped]
from PyInstaller.exceptions import PythonLibraryNotFoundError  # type: ignore[import-untyped]

from hami_mock import __version__
from hami_mock.cli.commands import COMMANDS
from hami_mock.cli.fleet import COMMANDS as FLEET
from hami_mock.kit.terminal import table

BINARY = Path("dist/hami-mock").absolute()
WORK = Path("build/binary").absolute()

# Imported by a name made at run time, so that PyInstaller can't see them. What is imported inside
# functions (httpcore2) it does see.
HIDDEN = (
    "anyio._backends._asyncio",
    "yaml._yaml",
    *(f"hami_mock.cli.{'ctl.client' if name == 'ctl' else name}" for name in COMMANDS),
    *(f"hami_mock.cli.fleet.{name.replace('-', '_')}" for name in ("dispatch", "verbs", *FLEET)),
)

DATA = (
    "hami_mock/vendors/catalog.json",
    "hami_mock/vendors/physics.json",
    "hami_mock/doctor/refusal_words.json",
    "hami_mock/views/page/page.html",
    "hami_mock/cli/fleet/demo.json",
    "hami_mock/fleet/page/page.html",
    *(f"hami_mock/whatif/report.{part}" for part in ("html", "css", "js")),
)

# Present in a developer's environment, or wanted by a corner of a library that we never enter.
# Not `unittest`, tempting as it is: some libraries import their mocks.
EXCLUDED = (
    "IPython", "_pytest", "aiohttp", "anyio._backends._trio", "anyio.pytest_plugin",
    "betterproto2_compiler", "coverage", "cryptography", "curses", "email_validator", "google",
    "grpc", "grpc_tools", "hypothesis", "lib2to3", "mypy", "pip", "prometheus_client",
    "pydantic", "pydoc_data", "pygments", "pytest", "readline", "rich", "setuptools", "sqlite3",
    "tkinter", "trio", "uvloop",
)  # fmt: skip

NO_LIBRARY = """\
PyInstaller needs libpython as a shared library, and {python} has none.
Use a Python that has one: Debian: apt-get install libpython3-dev; pyenv: build it with
PYTHON_CONFIGURE_OPTS=--enable-shared. Then: make clean binary PYTHON=/path/to/that/python3"""


def build() -> None:
    """Run PyInstaller."""
    arguments = [
        "--onefile",
        "--noconfirm",
        "--clean",
        # It warns of each excluded module that its recipes name; `prove` finds what is missing.
        "--log-level=ERROR",
        "--name=hami-mock",
        f"--distpath={BINARY.parent}",
        f"--workpath={WORK}",
        f"--specpath={WORK}",
        f"--paths={Path('src').absolute()}",
        *(f"--add-data={Path('src', file).absolute()}:{Path(file).parent}" for file in DATA),
        # No docstrings.
        "--optimize=2",
        # It asks for its own version when it is imported.
        "--copy-metadata=httpcore2",
        *(f"--hidden-import={name}" for name in HIDDEN),
        *(f"--exclude-module={name}" for name in EXCLUDED),
    ]
    if shutil.which("strip"):
        arguments.append("--strip")
    try:
        PyInstaller.__main__.run([*arguments, "src/hami_mock/__main__.py"])
    except PythonLibraryNotFoundError:
        sys.exit(NO_LIBRARY.format(python=sys.executable))


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the binary with an empty environment, far from the sources; fail if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603
            [BINARY, *arguments], env=environment, cwd=folder, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
    if done.returncode or "Traceback" in done.stderr:
        command = " ".join(("hami-mock", *arguments))
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def expect(what: str, *, holds: bool, seen: str) -> None:
    """Say what works, or end with what was seen instead."""
    if not holds:
        sys.exit(f"dist/hami-mock is wrong: not {what}. It said:\n{seen}")
    print(f"  works: {what}", flush=True)


def prove() -> None:
    """Try every part that PyInstaller could have left out."""
    text = run("version").stdout
    expect("version", holds=text == f"hami-mock {__version__}\n", seen=text)
    text = run("plan", "-o", "json").stdout
    rows = {row["resource"]: row["count"] for row in json.loads(text)["resources"]}
    is_right = len(rows) == 8 and rows["nvidia.com/gpumem"] == 65536
    expect("plan -o json: eight resources", holds=is_right, seen=text)
    text = run("models", "-o", "yaml").stdout
    expect("models -o yaml", holds="V100" in text, seen=text)
    text = run("demo").stdout
    is_right = "huawei.com/Ascend910-memory" in text and "Insufficient" in text
    expect("demo: pods run until a resource runs out", holds=is_right, seen=text)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "kubeconfig"
        config.write_text(json.dumps(unreachable_cluster()), encoding="utf-8")
        done = run("plan", "--nvidia-memory-factor=auto", KUBECONFIG=str(config))
    is_right = "can't find out the kubelet's version" in done.stderr
    expect("the Kubernetes client asks an API server", holds=is_right, seen=done.stderr)
    with agent() as port:
        text = scrape(port)
    expect("run: metrics are served, SIGTERM ends it", holds="hami_mock_info" in text, seen=text)


def unreachable_cluster() -> dict[str, object]:
    """Return a kubeconfig whose API server nobody can reach."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "none",
        "clusters": [{"name": "none", "cluster": {"server": f"http://127.0.0.1:{free_port()}"}}],
        "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
        "users": [{"name": "none", "user": {}}],
    }


@contextmanager
def agent() -> Iterator[int]:
    """Run the agent, for which no kubelet is there; give its port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["run", f"--socket-dir={folder}", f"--http-listen=127.0.0.1:{port}"]
        process = subprocess.Popen([BINARY, *arguments], env={}, stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            yield port
        finally:
            process.terminate()
            try:
                code = process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
    if code:
        sys.exit(f"hami-mock run: exit code {code} after SIGTERM")


def scrape(port: int) -> str:
    """Return the metrics as soon as there are any."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                return str(answer.read().decode())
        except URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def best_seconds(*arguments: str) -> float:
    """Return the shortest of five runs."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        run(*arguments)
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Build, prove, measure."""
    print("PyInstaller packs src/hami_mock ...", flush=True)
    build()
    print("tried with an empty environment:", flush=True)
    prove()
    rows = [
        ("dist/hami-mock", f"{BINARY.stat().st_size / 1e6:.1f} MB"),
        ("start of `version`, best of 5", f"{best_seconds('version'):.2f} s"),
        ("start of `plan`, best of 5", f"{best_seconds('plan'):.2f} s"),
    ]
    print("\n" + "\n".join(table(("BINARY", ""), rows, " r")))


if __name__ == "__main__":
    main()
