"""Our nvidia-smi for programs: --query-gpu, --query-compute-apps, -q, dmon, pmon, topo, nvlink."""

import csv
import re
from typing import Any

import pytest

from hami_mock.views.driver import layout
from hami_mock.views.driver.layout import CARD, FLAGS
from tests.driver.smi import Smi, details
from tests.driver.state_file import StateFile, card_uuid, cut, identity, live


def test_every_field_can_be_asked_for(smi: Smi, state: StateFile) -> None:
    help_text = smi.ask("--help-query-gpu")
    # As programs look for them; the unit is what the header of a list has too.
    found = re.findall(r'\n\s*\n"([^"]+)"(?: or "([^"]+)")?(?:\nIn (\S+)\.)?', help_text)
    names = [f"{name} [{unit}]" if unit else name for name, _, unit in found]
    fields = [[name, alias] if alias else [name] for name, alias, _ in found]
    assert len(fields) >= 130
    assert not [name for each in fields for name in each if name.startswith(".")]
    told = smi.ask("--query-gpu=" + ",".join(each[0] for each in fields), "--format=csv")
    head, *rows = csv.reader(told.splitlines(), skipinitialspace=True)
    assert head == names
    assert [len(row) for row in rows] == [len(fields)] * 8
    lacking = {name for name, value in zip(head, rows[0], strict=True) if value == "[N/A]"}
    assert {name.split(".")[0] for name in lacking} == {
        "gom",
        "vgpu_driver_capability",
        "vgpu_device_capability",
        "driver_model",
        "retired_pages",
        "temperature",
        "fabric",
    }
    for one, other in (each for each in fields if len(each) == 2):
        assert smi.query(one) == smi.query(other), other


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("name", "NVIDIA A100-SXM4-40GB"),
        ("serial", "1320000000003"),
        ("uuid", card_uuid(3)),
        ("pci.bus_id", "00000000:1E:00.0"),
        ("pci.bus", "0x1E"),
        ("pci.device_id", "0x20B010DE"),
        ("driver_version", "580.65.06"),
        ("count", "8"),
        ("utilization.gpu", "43"),
        ("utilization.memory", "23"),
        ("memory.total", "40960"),
        ("memory.used", "1003"),
        ("memory.reserved", "500"),
        ("memory.free", "39457"),
        ("temperature.gpu", "53"),
        ("temperature.memory", "60"),
        ("temperature.gpu.tlimit", "[N/A]"),
        ("power.draw", "250.00"),
        ("power.draw.average", "240.00"),
        ("power.limit", "400.00"),
        ("power.min_limit", "100.00"),
        ("clocks.sm", "1200"),
        ("clocks.mem", "1215"),
        ("clocks.max.sm", "1410"),
        ("clocks.applications.graphics", "1095"),
        ("clocks_event_reasons.active", "0x0000000000000004"),
        ("clocks_throttle_reasons.sw_power_cap", "Active"),
        ("clocks_throttle_reasons.hw_slowdown", "Not Active"),
        ("ecc.mode.current", "Enabled"),
        ("ecc.errors.corrected.volatile.dram", "3"),
        ("ecc.errors.corrected.volatile.total", "5"),
        ("ecc.errors.uncorrected.aggregate.total", "5"),
        ("pcie.link.gen.current", "4"),
        ("pcie.link.width.max", "16"),
        ("mig.mode.current", "Disabled"),
        ("compute_mode", "Default"),
        ("compute_cap", "8.0"),
        ("persistence_mode", "Enabled"),
        ("pstate", "P0"),
        ("fan.speed", "45"),
        ("vbios_version", "92.00.19.00.01"),
    ],
)
def test_fields(smi: Smi, state: StateFile, field: str, expected: str) -> None:
    assert smi.query(field, "-i", "3") == [[expected]]


def test_units_and_header(smi: Smi, state: StateFile) -> None:
    asked = "--query-gpu=index,memory.used,power.draw,fan.speed,clocks.sm"
    wanted = [
        "index, memory.used [MiB], power.draw [W], fan.speed [%], clocks.current.sm [MHz]",
        "2, 1002 MiB, 250.00 W, 45 %, 1200 MHz",
    ]
    assert smi.ask(asked, "--format=csv", "-i", "2").splitlines() == wanted
    assert smi.ask(asked, "--format=csv,noheader", "-i", "2").splitlines() == wanted[1:]
    assert smi.ask(asked, "--format=csv,nounits", "-i", "2").splitlines() == [
        wanted[0],
        "2, 1002, 250.00, 45, 1200",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--query-gpu=index,foo", "--format=csv"], 'Field "foo" is not a valid field to query.'),
        (["--query-gpu=.brand", "--format=csv"], 'Field ".brand" is not a valid field to query.'),
        (["--query-gpu=index"], '"--format=" switch is missing.'),
        (["--query-gpu=index", "--format=noheader"], "Format modifier --format=csv is mandatory."),
        (["--query-gpu=index", "--format=xml"], "Format modifier is not recognized."),
        (["--query-compute-apps=foo", "--format=csv"], 'Field "foo" is not a valid field'),
        (["--query-compute-apps=pid"], '"--format=" switch is missing.'),
    ],
)
def test_a_query_that_is_refused(
    smi: Smi, state: StateFile, arguments: list[str], said: str
) -> None:
    code, told = smi.run(*arguments)
    assert (code, told.startswith(said)) == (2, True), told


def test_every_field_of_processes_can_be_asked_for(smi: Smi, state: StateFile) -> None:
    names = re.findall(r'\n\n"([^"]+)"', smi.ask("--help-query-compute-apps"))
    assert {"pid", "process_name", "used_gpu_memory"} <= set(names)
    head = smi.ask(f"--query-compute-apps={','.join(names)}", "--format=csv").splitlines()[0]
    assert [each.split()[0] for each in head.split(", ")] == names


def test_processes(smi: Smi, state: StateFile) -> None:
    asked = "--query-compute-apps=pid,name,used_memory,gpu_uuid,gpu_bus_id"
    head, *rows = csv.reader(smi.ask(asked, "--format=csv").splitlines(), skipinitialspace=True)
    assert head == ["pid", "process_name", "used_gpu_memory [MiB]", "gpu_uuid", "gpu_bus_id"]
    assert rows == [
        [str(each["pid"]), each["name"], "600 MiB", card_uuid(i), f"00000000:{0x1B + i:02X}:00.0"]
        for i in range(8)
        for each in live(i)["processes"]
    ]
    state.set(0, live(0) | {"processes": [live(0)["processes"][0] | {"type": 2}]})
    none = smi.ask("--query-compute-apps=pid", "--format=csv,noheader", "-i", "0")
    assert none == "", "graphics isn't compute"


def test_everything(smi: Smi, state: StateFile) -> None:
    told = smi.ask("-q")
    assert re.search(r"^Attached GPUs +: 8$", told, re.MULTILINE)
    assert {line.index(" : ") for line in told.splitlines() if " : " in line} == {41}
    cards = details(told)
    assert [card["GPU UUID"] for card in cards] == [card_uuid(i) for i in range(8)]
    card = cards[3]
    wanted = {
        "": "00000000:1E:00.0",
        "Product Name": "NVIDIA A100-SXM4-40GB",
        "Product Architecture": "Ampere",
        "Minor Number": "3",
        "Board ID": "0x1b03",
        "Serial Number": "1320000000003",
        "MIG Mode/Current": "Disabled",
        "FB Memory Usage/Used": "1003 MiB",
        "BAR1 Memory Usage/Total": "65536 MiB",
        "PCI/GPU Link Info/Link Width/Current": "16x",
        "PCI/Tx Throughput": "1003 KB/s",
        "PCI/Rx Throughput": "2003 KB/s",
        "Utilization/Gpu": "43 %",
        "ECC Errors/Volatile/DRAM Correctable": "3",
        "ECC Errors/Aggregate/DRAM Uncorrectable": "5",
        "Temperature/GPU Current Temp": "53 C",
        "Temperature/GPU Shutdown Temp": "92 C",
        "GPU Power Readings/Average Power Draw": "240.00 W",
        "Clocks/SM": "1200 MHz",
        "Max Clocks/Video": "1290 MHz",
        "Clocks Event Reasons/SW Power Cap": "Active",
        "Processes/Process ID": "1030",
        "Processes/Process ID 2": "1031",
        "Processes/Process ID/Name": "train-0",
    }
    assert {name: card.get(name) for name in wanted} == wanted


def test_a_cut_card_has_its_devices(smi: Smi, state: StateFile) -> None:
    state.set(1, cut(1))
    (card,) = details(smi.ask("-q", "-i", "1"))
    assert card["MIG Device/GPU Instance ID"] == "7"
    assert card["MIG Device/GPU Instance ID 2"] == "2"
    assert card["MIG Device/FB Memory Usage/Total 2"] == "19968 MiB"
    assert card["MIG Device/Device Attributes/Shared/Multiprocessor count"] == "14"
    assert card["Processes"] == "None"


@pytest.mark.parametrize(
    ("part", "label"),
    [
        ("MEMORY", "FB Memory Usage/Total"),
        ("utilization", "GPU Utilization Samples/Max"),
        ("ECC", "ECC Mode/Current"),
        ("TEMPERATURE", "Temperature/Memory Current Temp"),
        ("POWER", "Power Samples/Avg"),
        ("CLOCK", "SM Clock Samples/Min"),
        ("COMPUTE", "Compute Mode"),
        ("PIDS", "Processes/Process ID"),
        ("PERFORMANCE", "Performance State"),
        ("SUPPORTED_CLOCKS", "Supported Clocks/Memory/Graphics"),
        ("PAGE_RETIREMENT", "Retired Pages/Pending Page Blacklist"),
        ("ACCOUNTING", "Accounted Processes"),
        ("ENCODER_STATS", "Encoder Stats/Active Sessions"),
        ("ROW_REMAPPER", "Remapped Rows/Pending"),
        ("VOLTAGE", "Voltage/Graphics"),
        ("FBC_STATS", "FBC Stats/Average FPS"),
        ("RESET_STATUS", "GPU Reset Status/Reset Required"),
    ],
)
def test_parts(smi: Smi, state: StateFile, part: str, label: str) -> None:
    cards = details(smi.ask("-q", "-d", part))
    assert len(cards) == 8
    assert label in cards[0]
    assert "Product Name" not in cards[0]
    both = details(smi.ask("-q", "-d", f"{part},COMPUTE"))
    assert {label, "Compute Mode"} <= both[0].keys()


def test_newer_cards_say_how_far_they_are_from_their_limits(smi: Smi, state: StateFile) -> None:
    (older,) = details(smi.ask("-q", "-d", "TEMPERATURE", "-i", "0"))
    assert older["Temperature/GPU T.Limit Temp"] == "N/A"
    assert older["Temperature/GPU Shutdown Temp"] == "92 C"
    state.replaced(1, unlike={"architecture": 9}).close()
    (newer,) = details(smi.ask("-q", "-d", "TEMPERATURE"))
    assert newer["Temperature/GPU T.Limit Temp"] == "35 C"
    assert newer["Temperature/GPU Shutdown T.Limit Temp"] == "-7 C"
    assert newer["Temperature/Memory Max Operating T.Limit Temp"] == "0 C"
    assert "Temperature/GPU Shutdown Temp" not in newer
    assert len(newer) == len(older)


def test_what_a_card_lacks_is_not_available(smi: Smi, state: StateFile) -> None:
    bare: dict[str, Any] = identity(0, 8) | {"flags": FLAGS["FLAG_FAN"], "serial": ""}
    with state.path.open("r+b") as file:
        file.seek(layout.card_offset(0))
        file.write(CARD.pack({"identity": bare, "live": live(0)}))
    assert smi.query("serial,ecc.mode.current,mig.mode.current,fan.speed,pstate", "-i", "0") == [
        ["[N/A]", "[N/A]", "[N/A]", "45", "P0"]
    ]
    (card,) = details(smi.ask("-q", "-i", "0"))
    assert card["Remapped Rows"] == card["Serial Number"] == card["ECC Mode/Current"] == "N/A"
    table = smi.ask("-i", "0").splitlines()
    ends = [line.rsplit("|", 2)[1].split() for line in table[8:11]]
    assert ends == [["N/A"], ["40%", "Default"], ["N/A"]]


def test_monitors(smi: Smi, state: StateFile) -> None:
    head, units, *rows = (line.split() for line in smi.ask("dmon", "-c", "1").splitlines())
    assert len(head) == len(units) == len(rows[0]) + 1  # these two begin with a #
    shown = [dict(zip(head[1:], row, strict=True)) for row in rows]
    assert [(row["gpu"], row["pwr"], row["sm"], row["mclk"]) for row in shown] == [
        (str(i), "250", str(live(i)["gpu"]), "1215") for i in range(8)
    ]
    errors = smi.ask("dmon", "-s", "e", "-c", "2", "-lms", "1", "-i", "0").splitlines()
    assert [line.split() for line in errors[2:]] == [["0", "5", "0", "0"]] * 2
    lines = [line.split() for line in smi.ask("pmon", "-c", "1", "-i", "1").splitlines()[2:]]
    assert lines == [
        ["1", str(1010 + n), "C", "20", "10", "-", "-", "-", "-", f"train-{n}"] for n in range(2)
    ]
    state.set(1, live(1) | {"process_count": 0})
    assert smi.ask("pmon", "-c", "1", "-i", "1").splitlines()[2].split() == ["1", *"-" * 9]


def test_topology(smi: Smi, state: StateFile) -> None:
    rows = [line.split("\t") for line in smi.ask("topo", "-m").splitlines()[1:9]]
    near = {0: " X ", 1: "NV4"}
    for i, row in enumerate(rows):
        wanted = [near.get(i ^ k) or ("PHB" if i // 4 == k // 4 else "SYS") for k in range(8)]
        assert row == [f"GPU{i}", *wanted, ["0-7", "8-15"][i // 4], str(i // 4), "", "N/A"]


def test_links_that_dont_work(smi: Smi, state: StateFile) -> None:
    state.set(0, live(0) | {"links_down": 0b1111})
    state.set(1, live(1) | {"links_down": 0b0111})
    told = smi.ask("nvlink", "-s", "-i", "0,1").splitlines()
    assert told[1] == "NVML: Unable to retrieve NVLink information as all links are inActive"
    assert [line.split()[-1] for line in told[3:]] == ["<inactive>"] * 3 + ["GB/s"]


def test_links(smi: Smi, state: StateFile) -> None:
    state.set(1, live(1) | {"links_down": 0b100})
    told = smi.ask("nvlink", "-s").splitlines()
    assert told[5].startswith("GPU 1: NVIDIA A100-SXM4-40GB (UUID: ")
    assert [line.strip() for line in told[6:10]] == [
        "Link 0: 25 GB/s",
        "Link 1: 25 GB/s",
        "Link 2: <inactive>",
        "Link 3: 25 GB/s",
    ]
