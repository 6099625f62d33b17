"""`hami-mock smi` without an agent: the cards that flags say, in the look of each maker's tool."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hami_mock.cli.completion import complete
from hami_mock.cli.main import main
from hami_mock.cli.smi_cards import NoAgent, ShownCard, ShownNode
from hami_mock.cli.smi_drawing import drawn
from hami_mock.cli.smi_query import FIELDS
from hami_mock.cli.smi_tools import tools
from hami_mock.vendors import VENDORS, catalog
from hami_mock.vendors.smi import Tool

Captured = pytest.CaptureFixture[str]
NONE = [f"--{vendor.prefix}-cards=0" for vendor in VENDORS]
TOOLS = tools()
MODELS = [(vendor.prefix, model) for vendor in VENDORS for model in catalog.models()[vendor.maker]]


@pytest.fixture
def say(capsys: Captured) -> Callable[..., str]:
    def told(*words: str) -> str:
        assert main(["smi", "--node-name=n1", *NONE, *words]) == 0
        return capsys.readouterr().out

    return told


def shown(name: str, **values: object) -> ShownCard:
    """A card as an agent shows it at work, with one program on it."""
    vendor, _ = TOOLS[name]
    model = next(iter(catalog.models()[vendor.maker].values()))
    idle: dict[str, object] = {
        **dict.fromkeys((field.value for field in FIELDS.values()), 7),
        "name": model.product, "model": model.name, "family": model.family, "index": 3,
        "time": datetime(2026, 1, 2, tzinfo=UTC), "driver_version": "580.95.05",
        "bus": "00000003:1E:00.0",
        "short_bus": "0003:1E:00.0", "health": "healthy", "is_cut": None,
        "memory_percent": 50.0, "card": f"{vendor.prefix}/3",
    }  # fmt: skip
    program = {"pid": 4711, "process": "ml/train-0/main", "process_memory": 900}
    return ShownCard(vendor, {**idle, **values}, [{**program, "gi": None, "ci": None}])


def lines_of(tool: Tool, *cards: ShownCard) -> list[str]:
    return list(drawn(tool, tool.table, cards))


def is_aligned(lines: list[str]) -> bool:
    """Whether each box has lines of one width, with the corners of its columns."""
    boxed = [line for line in lines if line[:1] in ("|", "+")]
    return len({len(line) for line in boxed}) <= 1 and all(line[-1] in "|+" for line in boxed)


@pytest.mark.parametrize(("prefix", "model"), MODELS)
def test_every_model_keeps_to_its_columns(prefix: str, model: str, say: Callable[..., str]) -> None:
    (vendor,) = (vendor for vendor in VENDORS if vendor.prefix == prefix)
    lines = say(f"--{prefix}-cards=12", f"--{prefix}-model={model}").splitlines()
    assert is_aligned(lines)
    product = catalog.models()[vendor.maker][model].product
    tool = vendor.smi and vendor.smi()[0]
    has_names = not tool or any("{name" in line for line in tool.table.card)
    assert not has_names or sum(product[:12] in line for line in lines) == 12


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("health", ["healthy", "degraded", "unhealthy", "lost"])
def test_a_busy_or_broken_card_keeps_to_its_columns(name: str, health: str) -> None:
    _, tool = TOOLS[name]
    numbers = {
        "busy": 100.0, "power": 1234.5, "power_limit": 1400.0, "temperature": 104.6, "fan": 100,
        "memory_used": 98304, "memory_total": 98304, "sm_clock": 2520, "memory_clock": 10501,
        "ecc_errors": 12345,
    }  # fmt: skip
    read = dict.fromkeys(numbers) | {"memory_total": 98304} if health == "lost" else numbers
    lines = lines_of(tool, shown(name, **read, health=health), shown(name))
    assert is_aligned(lines)
    assert any("104" in line or "105" in line for line in lines) == (health != "lost")
    assert any((tool.lost or tool.unknown) in line for line in lines) or health != "lost"
    # A lost card has not even half of an amount.
    amounts = any("98304" in line for line in lines)
    assert amounts == (health != "lost" and name not in ("hy-smi", "rocm-smi"))


def test_programs_stand_below_the_cards() -> None:
    for name, (_, tool) in TOOLS.items():
        text = "\n".join(lines_of(tool, shown(name)))
        assert ("ml/train-0/main" in text) == (tool.table.processes is not None)
        assert "No running processes" not in text


def test_parts_of_a_card_are_listed_with_it() -> None:
    _, tool = TOOLS["nvidia-smi"]
    part = {"number": 0, "instance": "MIG-1", "profile": "1g.10gb"}
    whole = replace(shown("nvidia-smi"), instances=[part])
    card, instance = drawn(tool, tool.views["-L"], [whole])
    assert card.startswith("GPU 3: ")
    assert re.fullmatch(r"  MIG 1g\.10gb +Device  0: \(UUID: MIG-1\)", instance)


def test_a_table_for_each_vendor(say: Callable[..., str]) -> None:
    out = say("--nvidia-cards=1", "--ascend-cards=1", "--biren-cards=1", "--kunlun-cards=2")
    places = [out.index(each) for each in ("NVIDIA-SMI 580", "npu-smi 24", "CARD  ", "biren/0")]
    assert places == sorted(places)
    assert out.count("kunlun/") == 2
    assert out.count("CARD  ") == 1


def test_words_choose_vendors_and_cards(say: Callable[..., str]) -> None:
    cards = ("--nvidia-cards=3", "--ascend-cards=2")
    chosen = say(*cards, "ascend", "nvidia/2", "--query=card", "--format=csv,noheader")
    assert chosen.split() == ["nvidia/2", "ascend/0", "ascend/1"]
    assert len(say(*cards, "all", "--list").splitlines()) == 5


def test_a_node_without_cards_says_how_to_have_some(say: Callable[..., str]) -> None:
    assert "--nvidia-cards" in say()


def test_list_names_the_uuids(say: Callable[..., str]) -> None:
    (line,) = say("--nvidia-cards=1", "--nvidia-model=L4", "-L").splitlines()
    assert re.fullmatch(r"nvidia/0: NVIDIA L4 \(UUID: GPU-[0-9a-f-]{36}\)", line)


def test_list_names_what_was_cut_out_of_a_card(say: Callable[..., str]) -> None:
    # In NVML's order, which isn't that on the card.
    flags = ("--nvidia-cards=1", "--nvidia-model=A100-SXM4-40GB", "--nvidia-mig=3g.20gb,1g.5gb")
    _, *parts = say(*flags, "-L").splitlines()
    assert [part.split()[0] for part in parts] == ["3g.20gb", "1g.5gb"]
    assert all("(UUID: MIG-" in part for part in parts)
    _, *numbered = say(*flags, "--as", "nvidia-smi", "-L").splitlines()
    assert [part.split()[1:4] for part in numbered] == [
        ["3g.20gb", "Device", "0:"],
        ["1g.5gb", "Device", "1:"],
    ]


def test_a_card_in_mig_mode_does_not_say_how_busy_it_is(say: Callable[..., str]) -> None:
    flags = ("--nvidia-cards=1", "--nvidia-model=A100-SXM4-40GB", "--nvidia-mig=1g.5gb")
    lines = say(*flags).splitlines()
    assert is_aligned(lines)
    (first,) = [index for index, line in enumerate(lines) if "00000000:1B:00.0" in line]
    assert lines[first].endswith(" On |")
    assert lines[first + 1].endswith(" N/A      Default |")
    busy = "--query=utilization.gpu,utilization.memory,memory.used"
    assert say(*flags, busy, "--format=csv,noheader") == "[N/A], [N/A], 0 MiB\n"
    (data,) = json.loads(say(*flags, "-o=json"))
    (part,) = data["instances"]
    assert (data["busy"], part["instance_busy"], part["instance_used"]) == (None, 0.0, 0)


def test_parts_of_cards_have_a_table_of_their_own(say: Callable[..., str]) -> None:
    flags = ("--nvidia-cards=1", "--nvidia-model=A100-SXM4-40GB")
    assert "MIG devices:" not in say(*flags)
    lines = say(*flags, "--nvidia-mig=3g.20gb,1g.5gb").splitlines()
    rows = [line for line in lines if re.match(r"\|  0 +\d+ +\d+ +\d+  \|", line)]
    assert [re.findall(r"\d+", row) for row in rows] == [
        ["0", "2", "0", "0", "0", "19968", "42", "0", "3", "0", "2", "0", "0"],
        ["0", "10", "0", "1", "0", "4864", "14", "0", "1", "0", "0", "0", "0"],
    ]
    assert "No MIG devices found" in say(*flags, "--nvidia-mig=")


def test_a_part_may_have_a_part_of_the_compute() -> None:
    _, tool = TOOLS["nvidia-smi"]
    part = {
        "number": 0, "gi": 2, "ci": 1, "profile": "1c.3g.20gb",
        "instance_used": 100, "instance_memory": 19968,
    }  # fmt: skip
    model = {"model": "A100-SXM4-40GB", "memory_total": 40960}
    cut = replace(shown("nvidia-smi", is_cut=True, **model), instances=[part])
    lost = replace(
        shown("nvidia-smi", is_cut=True, health="lost", **model),
        instances=[part | {"instance_used": None}],
    )
    lines = lines_of(tool, cut, lost)
    assert is_aligned(lines)
    first, second = (line for line in lines if line.startswith("|  3    2   1   0  |"))
    assert "100MiB / 19968MiB    | 14      0 |  3   0    2    0    0 |" in first
    assert "ERR!    | 14 " in second


def test_each_maker_has_a_driver_of_its_own(say: Callable[..., str]) -> None:
    prefixes = ("nvidia", "mlu", "iluvatar", "ascend", "amd", "biren")
    flags = [*(f"--{prefix}-cards=1" for prefix in prefixes), "--driver-version=550.54.15"]
    told = say(*flags, "--query=vendor,driver_version", "--format=csv,noheader")
    versions = dict(line.split(", ") for line in told.splitlines())
    assert versions == {
        "nvidia": "550.54.15", "mlu": "v6.2.10", "iluvatar": "4.4.0", "ascend": "24.1.0",
        "amd": "6.14.14", "biren": "[N/A]",
    }  # fmt: skip
    data = {card["vendor"]: card["driver_version"] for card in json.loads(say(*flags, "-o=json"))}
    assert data == versions | {"biren": None}
    tables = say(*flags)
    for prefix, word in (("nvidia", "NVIDIA-SMI"), ("mlu", "CNMON"), ("ascend", "npu-smi")):
        (line,) = (line for line in tables.splitlines() if word in line)
        assert line.count(versions[prefix]) == 2


@pytest.mark.parametrize("columns", [60, 80, 90, 100, 120])
def test_the_plain_table_fits_and_cuts_no_name_of_a_card(
    columns: int, say: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hami_mock.cli.smi_drawing.width", lambda: columns)
    lines = say("--iluvatar-cards=12", "--metax-gpu-cards=1", "--biren-cards=1").splitlines()
    cards = [f"iluvatar/{index}" for index in range(12)] + ["metax-gpu/0", "biren/0"]
    rows = [line for line in lines[1:] if not line.startswith(" ")]
    assert [row.split()[0] for row in rows if "/" in row.split()[0]] == cards
    assert max(map(len, lines)) <= max(columns, 68)
    assert "…" not in "".join(lines) or columns < 80
    has = [word in lines[0].split() for word in ("ID", "BUS", "PODS")]
    assert has == [columns > 90, columns >= 90, columns >= 80]
    bus = re.search(r"\S*1B:00\.0", lines[1])
    assert bool(bus) == (columns >= 90)
    assert not bus or len(bus[0]) == (len("1B:00.0") if columns == 90 else len("00000000:1B:00.0"))


def test_fields_as_csv(say: Callable[..., str]) -> None:
    flags = ("--nvidia-cards=2", "--nvidia-model=L4", "--query=index,name,memory.total,fan.speed")
    assert say(*flags).splitlines() == [
        "index, name, memory.total [MiB], fan.speed [%]",
        "0, NVIDIA L4, 23034 MiB, [N/A]",
        "1, NVIDIA L4, 23034 MiB, [N/A]",
    ]
    assert (
        say(*flags, "--format=csv,noheader,nounits").splitlines()[0].startswith("0, NVIDIA L4, 2")
    )
    assert "23034," in say(*flags, "--format=csv,nounits")


def test_all_fields_as_csv_and_all_values_as_json(say: Callable[..., str]) -> None:
    cards = ("--nvidia-cards=1", "--mlu-cards=1")
    (first, second) = csv.DictReader(say(*cards, "-o=csv").splitlines(), skipinitialspace=True)
    assert len(first) == len(FIELDS)
    values = json.loads(say(*cards, "-o=json"))
    assert [value["card"] for value in values] == [first["card"], second["card"]]
    assert values[0]["power"] == float(first["power.draw [W]"].removesuffix(" W"))
    assert values[0]["processes"] == []


def test_every_field_has_a_value(say: Callable[..., str]) -> None:
    out = say("--nvidia-cards=1", "--nvidia-model=RTX-4090", f"--query={','.join(FIELDS)}")
    assert out.count("[N/A]") == 1  # numa


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nvida"], 2, "VENDOR: 'nvida' is not a vendor or card; did you mean nvidia?"),
        (["nvidia/x"], 2, "'nvidia/x' is not a vendor or card: use one of nvidia, mlu"),
        (["amd"], 1, "VENDOR: this node has no amd: it has nvidia"),
        (["nvidia/9"], 1, "VENDOR: this node has no nvidia/9: it has nvidia/0, nvidia/1\n"),
        (["nvidia/20", "--nvidia-cards=20"], 1, "no nvidia/20: it has nvidia/0 to nvidia/19\n"),
        (["--query=memory.usd"], 2, "--query: 'memory.usd' is not a field; did you mean memory.us"),
        (["--query=xyzzy"], 2, "--query: 'xyzzy' is not a field: use some of card, vendor, index"),
        (["--query=name", "--format=xml"], 2, "--format: 'xml' is not allowed: it must be csv"),
        (["--format=csv"], 2, "--format: it needs --query"),
        (["--query=name", "-o=json"], 2, "--query: it prints CSV: leave out --list and -o"),
        (["--loop=0"], 2, "-l/--loop: '0' is not allowed"),
        (["--control-socket=/x"], 2, "--control-socket: an agent shows its own cards"),
        (["--as=rocm-smi"], 2, "--as: write the tool after a space"),
        (["--as", "npu-smi", "info"], 1, "--as npu-smi: this node has no Ascend cards\n"),
        (["--as", "rocm-smi", "-i", "0"], 1, "--as rocm-smi: this node has no AMD cards\n"),
        (["--as", "npu-smi", "x"], 2, "--as npu-smi: 'x' is not known: use 'info', 'info -l'"),
        (["--as", "cnmon", "x"], 2, "--as cnmon: 'x' is not known: use no words"),
        (["--as", "nvidia-smi", "-i", "7"], 1, "nvidia-smi: -i: no such card: this node has 2"),
        (["--as", "nvidia-smi", "-i"], 2, "--as nvidia-smi: -i: it must be followed by"),
        (["--as", "nvidia-smi", "--query-gpu=x"], 2, "--as nvidia-smi: --query-gpu: 'x' is not a"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(words: list[str], code: int, told: str, capsys: Captured) -> None:
    assert main(["smi", *NONE[1:], "--nvidia-cards=2", *words]) == code
    assert told in capsys.readouterr().err


def test_an_agent_that_is_named_must_be_there(tmp_path: Path, capsys: Captured) -> None:
    assert main(["smi", f"--control-socket={tmp_path}/none"]) == 1
    assert "no agent listens on" in capsys.readouterr().err


def test_without_an_agent_the_settings_are_shown_with_a_notice(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAMI_MOCK_CONTROL_SOCKET", f"{tmp_path}/none")
    monkeypatch.setenv("HAMI_MOCK_VENDORS", "nvidia")
    assert main(["smi", "--list"]) == 0
    told = capsys.readouterr()
    assert [line.partition(":")[0] for line in told.out.splitlines()] == ["nvidia/0", "nvidia/1"]
    assert "showing the configured cards, idle" in told.err


def test_words_after_as_are_the_tools(say: Callable[..., str]) -> None:
    cards = ("--nvidia-cards=2", "--ascend-cards=3", "--nvidia-model=L4", "--as")
    asked = ("nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader", "-i", "1")
    assert say(*cards, *asked) == "1, NVIDIA L4\n"
    assert len(say(*cards, "nvidia-smi", "-L").splitlines()) == 2
    assert "Product Type                   : Ascend910B3" in say(
        *cards, "npu-smi", "info", "-t", "product", "-i", "2"
    )
    assert "Total Count                    : 3" in say(*cards, "npu-smi", "info", "-l")
    assert [line.split()[0] for line in say(*cards, "npu-smi", "info", "-m").splitlines()[1:]] == [
        "0", "1", "2",
    ]  # fmt: skip
    assert "24.1.0" in say(*cards, "npu-smi", "-v")


def test_memory_is_of_the_kind_that_a_chip_has(say: Callable[..., str]) -> None:
    def usage(model: str) -> list[str]:
        out = say("--ascend-cards=1", f"--ascend-model={model}")
        return re.findall(r"\d+ +/ \d+", out)[1:]

    assert usage("Ascend910B3") == ["0    / 0", "0    / 65536"]
    assert usage("Ascend310P") == ["0    / 21527", "0    / 0"]


def test_it_does_so_again(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    assert main(["smi", *NONE, "--nvidia-cards=1", "-L", "-l", "2"]) == 130
    assert waits == [2, 2, 2]
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_settings_never_take_the_place_of_an_agent_that_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    answers = iter([ShownNode([shown("nvidia-smi")])])
    sleeps = iter([None])

    def ask(path: str) -> ShownNode:
        try:
            return next(answers)
        except StopIteration:
            raise NoAgent(f"no agent listens on {path!r}") from None

    monkeypatch.setattr("hami_mock.cli.smi.of_agent", ask)
    monkeypatch.setattr("time.sleep", lambda _: next(sleeps))
    assert main(["smi", "-l", "10ms", "--query=card", "--format=csv,noheader"]) == 1
    told = capsys.readouterr()
    assert told.out == "nvidia/3\n"
    assert told.err.startswith("hami-mock: no agent listens on ")
    assert "settings" not in told.err


def test_completion(capsys: Captured) -> None:
    complete(["smi", ""])
    assert {vendor.prefix for vendor in VENDORS} <= {*capsys.readouterr().out.split()}
    complete(["smi", "--as", ""])
    assert capsys.readouterr().out.split() == list(TOOLS)
    complete(["smi", "-o", ""])
    assert capsys.readouterr().out.split() == ["table", "json", "yaml", "csv"]
