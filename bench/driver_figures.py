"""What the driver's library costs the programs that open it, with 128 cards, beside its peer."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from statistics import median

from bench.agent import agent
from bench.load_model_figures import at_work
from bench.progress import say
from bench.report import Figure, Section
from bench.workspace import ROOT, Workspace
from hami_mock.cli.ctl.client import main as ctl
from hami_mock.vendors.catalog import models
from hami_mock.views.driver.layout import file_size
from tests.driver.state_file import StateFile
from tests.e2e.harness.commands import run
from tests.e2e.harness.errors import HarnessError
from tests.integration.grpcio_kubelet import GrpcioKubelet
from tests.integration.nvml_client import nvml_client
from tests.judges.driver_root import DriverRoot, invented, made
from tests.judges.getters import silent_everywhere, silent_of, walked
from tests.judges.namespace import need_namespaces, with_folders
from tests.judges.real_plugin import plugin
from tests.judges.table import JUDGES
from tests.unit.views.driver.reading import shown_in

_CARDS = 128
_MODEL = "H100-SXM5-80GB"
_CONTAINERS = 4
"""On each card."""
_MIB = 1024 * 1024
_RESOURCE = "nvidia.com/gpu"
_PLUGIN_CARDS = 8
_LISTED_CARDS, _LISTED_EACH = 5, 32768
"""Cards of the default model, and the devices that each has for its memory alone."""
_GETTERS = (
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetTotalEnergyConsumption",
)


def driver_figures(work: Workspace, repeats: int) -> Section:
    """Measure with a client in C, with NVIDIA's device plugin, and with nvidia-ml-py."""
    notes = [
        "The peer is NVIDIA's nvml-mock 0.3 with 8 cards, measured on two noisy cores.",
        "The state file's pages are in memory once, whoever reads them.",
        "Fans, retired pages, MIG devices and encrypted memory are of different cards: none alone "
        "answers more than 115 getters, where the target is 120 (docs/driver.md).",
    ]
    compiler = shutil.which("cc")
    if compiler is None:
        return Section("Driver: not measured, for there is no C compiler", [])
    client = work.folder / "nvml_client"
    run([compiler, "-O2", "-o", client, ROOT / "bench/nvml_client.c", "-ldl"])
    root = made(work.folder / "driver", _MODEL, _CARDS)
    figures = [*_client_figures(client, root, repeats)]
    figures += _writing(work, repeats)
    measured = ("getters", _getters), ("Xid", _xids), ("Xid by ctl", _commanded)
    for name, measure in measured:
        say(f"driver: {name}")
        try:
            figures += measure(work, root, repeats)
        except HarnessError as error:
            notes.append(f"{name} not measured: {error}")
    known = len(models()["nvidia"])
    figures += [
        Figure("cards", _CARDS, "", peer="8"),
        Figure("models", known, "", peer="7"),
    ]
    return Section(f"Driver: a client of NVML, {_CARDS} cards", figures, notes=notes)


def _client_figures(client: Path, root: DriverRoot, repeats: int) -> Iterator[Figure]:
    rounds = []
    for number in range(repeats):
        say(f"driver: {number} of {repeats}")
        lines = run([client, root.folder / "lib64/libnvidia-ml.so.1"]).splitlines()
        rounds.append({name: float(value) for name, value in map(str.split, lines)})

    def middle(*names: str) -> float:
        return median(sum(each[name] for name in names) for each in rounds)

    yield Figure("dlopen + init", middle("dlopen", "init") / 1e6, "ms", 0.5, "5-18")
    slowest = max(middle(name) for name in _GETTERS)
    yield Figure(f"a getter, the slowest of {len(_GETTERS)}", slowest / 1e3, "us", 0.2, "0.5-1.3")
    yield Figure("memory added: library and state", middle("added_ready") / _MIB, "MiB", 1, "12-13")
    every = middle("added_all") / _MIB
    yield Figure("and after a look at all cards", every, "MiB")
    yield Figure("of which its own", middle("own_all") / _MIB, "MiB", 1)
    yield Figure("threads added", middle("threads"), "", 0, "6")


def _writing(work: Workspace, repeats: int) -> Iterator[Figure]:
    """Measure what the agent does for the state file in a second in which all cards work."""
    state, source = at_work(_CARDS, _CONTAINERS)
    (folder := work.folder / "written").mkdir()
    file, cards = shown_in(folder, state)
    took = []
    for _ in range(repeats):
        source.advance(1.0)
        began = time.process_time()
        cards.keep_up(file)
        took.append((time.process_time() - began) * 1000)
    file.close()
    name = f"the agent's writing in a second, {_CARDS * _CONTAINERS} containers"
    yield Figure(name, median(took), "ms")
    yield Figure("state file", file_size(_CARDS) / _MIB, "MiB")


def _getters(work: Workspace, root: DriverRoot, _repeats: int) -> list[Figure]:
    python = JUDGES["nvidia-ml-py"]()
    found = walked(python, root)

    def root_of(model: str, cards: int, *flags: str) -> DriverRoot:
        return made(work.folder / f"getters-{model}", model, cards, *flags)

    all_of_them = len(found)
    answered = all_of_them - len(silent_everywhere(python, root_of))
    name = f"getters of nvidia-ml-py that some card answers, of {all_of_them}"
    return [
        Figure(name, answered, "", at_least=120),
        Figure(
            f"that the {_MODEL} alone answers", all_of_them - len(silent_of(found)), "", peer="73"
        ),
    ]


def _xids(work: Workspace, _root: DriverRoot, repeats: int) -> list[Figure]:
    """Measure the way of a Xid: from the state file through NVIDIA's plugin to a kubelet."""
    need_namespaces()
    program = JUDGES["nvidia-device-plugin"]()
    took: list[float] = []
    for number in range(1 + repeats // _PLUGIN_CARDS):
        root, file = invented(work.folder / f"driver-{number}", _PLUGIN_CARDS)
        took += _ways(program, root, file)
        file.close()
    return [
        Figure("a Xid in the file to NVIDIA's plugin's list", median(took), "ms", 20, "never"),
        Figure("the longest", max(took), "ms"),
    ]


def _commanded(work: Workspace, _root: DriverRoot, repeats: int) -> list[Figure]:
    """Measure the way of `ctl fail` to a client of NVML in a mount namespace of its own.

    The agent has many devices to list, and its client must not wait for that.
    """
    need_namespaces()
    root, control = work.folder / "live", work.folder / "control.sock"
    (elsewhere := work.folder / "elsewhere").mkdir()
    flags = "--driver=on", f"--driver-root={root}", f"--control-socket={control}"
    within = partial(with_folders, {str(elsewhere): root})
    took = []
    with (
        agent(work, *flags, f"--nvidia-cards={_LISTED_CARDS}"),
        nvml_client(elsewhere, within) as client,
        redirect_stdout(StringIO()),
    ):
        for _ in range(repeats):
            client.ask("wait")
            begun = time.monotonic()
            ctl([f"--control-socket={control}", "fail", "nvidia/0", "--xid=94"])
            client.hear()
            took.append((client.ask("woken") - begun) * 1000)
            ctl([f"--control-socket={control}", "recover", "nvidia/0"])
    listed = f"{_LISTED_CARDS * _LISTED_EACH:,}"
    name = f"ctl fail to a client in another mount namespace, {listed} devices"
    return [Figure(name, median(took), "ms", 20, "never"), Figure("its longest", max(took), "ms")]


def _ways(program: Path, root: DriverRoot, file: StateFile) -> list[float]:
    """Give each card a Xid; return how many milliseconds each took to be in the list."""
    import deviceplugin_pb2  # type: ignore[import-not-found]

    took = []
    with (
        tempfile.TemporaryDirectory(prefix="hm-") as sockets,
        GrpcioKubelet(Path(sockets), deviceplugin_pb2) as kubelet,
        plugin(program, root, kubelet) as real,
    ):
        kubelet.wait_for_lists({_RESOURCE})
        kubelet.wait_until(real.is_waiting, "its wait for events")
        lists = kubelet.current(_RESOURCE).lists
        for card in range(_PLUGIN_CARDS):
            begun = time.perf_counter()
            file.xid(card, 79)
            kubelet.wait_until(lambda wanted=card + 2: len(lists) >= wanted, "the list")  # type: ignore[misc]
            took.append((time.perf_counter() - begun) * 1000)
    return took
