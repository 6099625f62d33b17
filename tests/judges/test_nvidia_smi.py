"""NVIDIA's own nvidia-smi, of two branches: its views come whole and with the right numbers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.driver.state_file import StateFile, live
from tests.e2e.harness.errors import CommandFailed
from tests.judges.conftest import Have, MakeRoot
from tests.judges.driver_root import DriverRoot
from tests.judges.nodes import NODES

CARDS = 16
Invented = Callable[[int], tuple[DriverRoot, StateFile]]


@pytest.fixture(params=[535, 550])
def smi(request: pytest.FixtureRequest, have: Have) -> Path:
    return have(f"nvidia-smi-{request.param}")


@pytest.fixture
def root(invented: Invented) -> DriverRoot:
    return invented(CARDS)[0]


def test_list(smi: Path, root: DriverRoot) -> None:
    lines = root.ask(smi, "-L").splitlines()
    assert lines == [f"GPU {c.index}: {c.name} (UUID: {c.uuid})" for c in root.cards]


def test_table(smi: Path, root: DriverRoot) -> None:
    told = root.ask(smi)
    assert "Driver Version: 580.65.06" in told
    assert "CUDA Version: 13.0" in told
    use = re.findall(r"(\d+)C +P0 +250W / +400W \| +(\d+)MiB / +40960MiB \| +(\d+)% ", told)
    wanted = [live(index) for index in range(CARDS)]
    assert use == [
        (str(each["temperature"]), str(1000 + index), str(each["gpu"]))
        for index, each in enumerate(wanted)
    ]
    processes = re.findall(r"\| +(\d+) +N/A +N/A +(\d+) +C +(\S+) +(\d+)MiB \|", told)
    assert processes == [
        (str(index), str(each["pid"]), each["name"], "600")
        for index, card in enumerate(wanted)
        for each in card["processes"]
    ]


def test_everything_as_xml(smi: Path, root: DriverRoot) -> None:
    log = ElementTree.fromstring(root.ask(smi, "-q", "-x"))
    cards = log.findall("gpu")
    assert log.findtext("attached_gpus") == str(CARDS)
    wanted = {
        "uuid": [card.uuid for card in root.cards],
        "product_name": [card.name for card in root.cards],
        "minor_number": [str(index) for index in range(CARDS)],
        "serial": [str(1320000000000 + index) for index in range(CARDS)],
        "fb_memory_usage/total": ["40960 MiB"] * CARDS,
        "fb_memory_usage/used": [f"{1000 + index} MiB" for index in range(CARDS)],
        "fb_memory_usage/reserved": ["500 MiB"] * CARDS,
        "bar1_memory_usage/total": ["65536 MiB"] * CARDS,
        "utilization/gpu_util": [f"{live(index)['gpu']} %" for index in range(CARDS)],
        "utilization/memory_util": [f"{live(index)['memory']} %" for index in range(CARDS)],
        "temperature/gpu_temp": [f"{live(index)['temperature']} C" for index in range(CARDS)],
        "clocks/sm_clock": ["1200 MHz"] * CARDS,
        "max_clocks/mem_clock": ["1215 MHz"] * CARDS,
        "pci/pci_gpu_link_info/pcie_gen/max_link_gen": ["4"] * CARDS,
        "pci/pci_gpu_link_info/link_widths/current_link_width": ["16x"] * CARDS,
        "ecc_mode/current_ecc": ["Enabled"] * CARDS,
        "mig_mode/current_mig": ["Disabled"] * CARDS,
    }
    assert {path: [card.findtext(path) for card in cards] for path in wanted} == wanted


def test_everything_as_text(smi: Path, root: DriverRoot) -> None:
    told = root.ask(smi, "-q")
    assert re.findall(r"GPU UUID +: (\S+)", told) == [card.uuid for card in root.cards]
    assert told.rstrip().splitlines()[-1].strip()


@pytest.mark.parametrize(("model", "cards"), [*NODES, ("V100-SXM2-32GB", 8), ("RTX-4090", 8)])
def test_everything_of_other_models(smi: Path, root_of: MakeRoot, model: str, cards: int) -> None:
    root = root_of(model, cards)
    log = ElementTree.fromstring(root.ask(smi, "-q", "-x"))
    assert [
        (
            card.findtext("uuid"),
            card.findtext("product_name"),
            card.findtext("fb_memory_usage/total"),
        )
        for card in log.findall("gpu")
    ] == [(card.uuid, card.name, f"{card.memory} MiB") for card in root.cards]
    assert root.ask(smi, "-q").count("GPU UUID") == cards
    assert root.ask(smi).count("Default |") == cards


def test_everything_of_every_model_of_the_catalog(smi: Path, every_model: DriverRoot) -> None:
    cards = ElementTree.fromstring(every_model.ask(smi, "-q", "-x")).findall("gpu")
    assert [
        (each.findtext("product_name"), each.findtext("fb_memory_usage/total")) for each in cards
    ] == [(card.name, f"{card.memory} MiB") for card in every_model.cards]
    assert every_model.ask(smi, "-q").count("GPU UUID") == len(cards)
    assert every_model.ask(smi).count("Default |") == len(cards)


@pytest.mark.parametrize(
    "part", ["MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "PIDS", "PERFORMANCE"]
)
def test_parts(smi: Path, root: DriverRoot, part: str) -> None:
    told = root.ask(smi, "-q", "-d", part)
    assert len(re.findall(r"^GPU 0000", told, re.MULTILINE)) == CARDS


def test_topology(smi: Path, root: DriverRoot) -> None:
    """How near two cards are comes by an entry that NVIDIA has published nothing about."""
    told = root.ask(smi, "topo", "-m")
    rows = [line.split("\t") for line in told.splitlines() if line.startswith("GPU")]
    assert len(rows) == CARDS
    assert [row[1 + index] for index, row in enumerate(rows)] == [" X "] * CARDS
    near = [("0-7", "0"), ("8-15", "1")]
    assert [(row[1 + CARDS], row[2 + CARDS]) for row in rows] == [
        near[index // 4 % 2] for index in range(CARDS)
    ]


def test_links(smi: Path, root: DriverRoot) -> None:
    told = root.ask(smi, "nvlink", "-s")
    assert len(re.findall(r"Link \d: 25 GB/s", told)) == 4 * CARDS


def test_compute_applications(smi: Path, root: DriverRoot) -> None:
    fields = "gpu_uuid,pid,process_name,used_memory"
    told = root.ask(smi, f"--query-compute-apps={fields}", "--format=csv,noheader,nounits")
    assert sorted(told.splitlines()) == sorted(
        f"{card.uuid}, {each['pid']}, {each['name']}, 600"
        for card in root.cards
        for each in live(card.index)["processes"]
    )


@pytest.mark.parametrize("view", ["pmon", "dmon"])
def test_what_is_not_there_ends_in_words(smi: Path, root: DriverRoot, view: str) -> None:
    """These ask for entries of the export table that NVIDIA has published nothing about."""
    done = subprocess.run(
        [smi, view, "-c", "1"], env=root.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode >= 0, "it was killed by a signal"
    assert "Not supported on the device(s)" in done.stdout


def test_a_card_that_is_lost(smi: Path, invented: Invented) -> None:
    root, file = invented(4)
    file.set(2, live(2) | {"lost": 1, "last_xid": 79})
    with pytest.raises(CommandFailed, match="gpu 2: GPU is lost") as failed:
        root.ask(smi, "-L")
    said = failed.value.output
    assert [card.uuid in said for card in root.cards] == [True, True, False, True]
