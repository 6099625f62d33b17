import time
from collections.abc import Iterator
from typing import Any

import pytest

from hami_mock.cli.ctl import screens

UUID = "GPU-bfc34048-c24a-5ef1-a69c-d9d524f5216d"


def card(name: str = "nvidia/0", **changes: Any) -> dict[str, Any]:
    data = {
        "name": name,
        "uuid": UUID,
        "model": "T4",
        "memory": 15360,
        "numa": None,
        "health": "healthy",
        "degraded": False,
        "reasons": [],
        "xids": {},
        "holders": [],
    }
    return data | changes


def resource(**changes: Any) -> dict[str, Any]:
    data = {
        "name": "nvidia.com/gpu",
        "unit": "slot",
        "phase": "watched",
        "reason": "",
        "count": 20,
        "healthy": 10,
        "unhealthy": 10,
        "lost": 0,
        "retired": 3,
        "held": 4,
        "faults": [],
    }
    return data | changes


def status(**changes: Any) -> dict[str, Any]:
    data = {
        "node": "node-a",
        "version": "0.2.0",
        "ready": True,
        "configuration": {"file": None, "error": None, "changed": None, "overrides": {}},
        "resources": [resource()],
        "cards": [card()],
        "scenario": None,
        "holders_known": True,
    }
    return data | changes


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_units_that_wait_to_move_say_what_for() -> None:
    why = "pods hold devices of it; it moves to the Node's status when none does"
    rows = resource(waits_to_move=True, why=why), resource(waits_to_move=False, why="harmless")
    waits, stays = (
        next(line for line in screens.status(status(resources=[row])) if "watched" in line)
        for row in rows
    )
    assert waits.endswith(f"  watched: {why}")
    assert stays.endswith("  watched")


def shown(data: dict[str, Any]) -> str:
    return "\n".join(screens.status(data))


def test_a_status_that_is_well() -> None:
    assert shown(status()).splitlines() == [
        "Node node-a: hami-mock 0.2.0, ready",
        "",
        "CARD      UUID                                      MODEL  MEMORY MiB  NUMA  XIDS  HEALTH",
        f"nvidia/0  {UUID}  T4          15360     -  -     healthy",
        "",
        "RESOURCE        UNIT  COUNT  HEALTHY  UNHEALTHY  LOST  RETIRED  HELD  STATE",
        "nvidia.com/gpu  slot     20       10         10     0        3     4  watched",
        "",
        "No pod holds a device.",
    ]


def test_what_is_wrong_with_cards_is_shown() -> None:
    cards = [
        card(health="unhealthy", reasons=["unhealthy: Xid 79"], xids={"79": 2, "31": 1}, numa=0),
        card("nvidia/1", degraded=True, reasons=["degraded: thermal"]),
        card("nvidia/2", health="lost", reasons=["unhealthy: x", "lost"]),
    ]
    lines = shown(status(cards=cards)).splitlines()
    assert lines[3].endswith("0  79 x2, 31 x1  unhealthy: Xid 79")
    assert lines[4].endswith("healthy; degraded: thermal")
    assert lines[5].endswith("unhealthy: x; lost")


def test_what_is_wrong_with_resources_is_shown() -> None:
    found = resource(phase="failed", reason="refused", faults=["allocate slow for 2 s"], held=None)
    line = shown(status(resources=[found], ready=False)).splitlines()[6]
    assert line.endswith("?  failed: refused; allocate slow for 2 s")


def test_who_holds_what() -> None:
    holders = [
        {
            "namespace": "default",
            "pod": "a",
            "container": "main",
            "devices": {"nvidia.com/gpu": 1, "x/mem": 512},
            "memory": 512,
            "cores": 30,
            "load": {"busy": 20, "memory": 256},
        },
        {
            "namespace": "default",
            "pod": "b",
            "container": "main",
            "devices": {"nvidia.com/gpu": 2},
            "memory": 32768,
            "cores": 100,
            "load": {"busy": 0, "memory": 0},
        },
    ]
    lines = shown(status(cards=[card(holders=holders)])).splitlines()
    assert lines[-3:] == [
        "CARD      POD        CONTAINER        BUSY    USED MiB  HOLDS",
        "nvidia/0  default/a  main       20 of 30 %  256 of 512  1 nvidia.com/gpu, 512 x/mem",
        "nvidia/0  default/b  main       0 of 100 %  0 of 32768  2 nvidia.com/gpu",
    ]


def test_what_is_not_known_is_said_once() -> None:
    assert shown(status(holders_known=False)).endswith("It isn't known yet who holds what")
    notices = {"holders": "it isn't known who holds what: there is no x", "pods": "not read yet"}
    lines = shown(status(holders_known=False, notices=notices)).splitlines()
    assert lines[1] == "notice: not read yet"
    assert lines[-1] == "It isn't known who holds what: there is no x"
    assert len([line for line in lines if "there is no x" in line]) == 1


def test_what_the_cards_show() -> None:
    reading = {
        "busy": 80.0,
        "memory_used": 8192,
        "power": 61.7,
        "temperature": 54.4,
        "sm_clock": 795,
        "throttles": ["gpu_idle", "sw_thermal"],
    }
    cards = [card(reading=reading), card("nvidia/1", health="lost", reasons=["lost"], reading=None)]
    rules = {"default/a": "sine:20-80:10m"}
    lines = shown(status(cards=cards, load={"set": rules})).splitlines()
    assert lines[6:8] == [
        "CARD      BUSY %  USED MiB  POWER W  TEMP C  CLOCK MHz  SLOWED BY",
        "nvidia/0      80      8192       62      54        795  sw_thermal",
    ]
    assert lines[8] == ""
    assert lines[-1] == "Load set with ctl: default/a sine:20-80:10m"


def test_the_configuration_and_the_scenario() -> None:
    text = shown(
        status(
            ready=False,
            configuration={
                "file": "/etc/x.yaml",
                "error": ["x.yaml: a: wrong", "x.yaml: b: wrong"],
                "changed": 1700000000.25,
                "overrides": {"nvidia-cards": "4", "mlu-cards": "0"},
            },
            scenario={"name": "drill", "seed": 7, "elapsed": 12.34, "next": "fail nvidia/0"},
        )
    )
    assert text.splitlines()[:7] == [
        "Node node-a: hami-mock 0.2.0, not ready",
        "Configuration: changed 2023-11-14 22:13:20",
        "Set with ctl: nvidia-cards=4 mlu-cards=0",
        "configuration error: x.yaml: a: wrong",
        "configuration error: x.yaml: b: wrong",
        "Scenario drill: seed 7, 12.3s",
        "Next: fail nvidia/0",
    ]


def test_a_node_without_cards() -> None:
    text = shown(status(cards=[], resources=[]))
    assert "No cards are configured" in text
    assert "No resources are registered" in text


def test_health_is_coloured_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hami_mock.kit.terminal.is_fancy", lambda: True)
    text = shown(status(cards=[card(), card(health="unhealthy", reasons=["unhealthy"])]))
    assert "\x1b[32mhealthy\x1b[0m" in text
    assert "\x1b[31munhealthy\x1b[0m" in text


def test_a_scenario_with_and_without_an_end() -> None:
    data = {"name": "drill", "seed": 7, "elapsed": 0.0, "total": 90.0, "next": "", "next_at": None}
    assert list(screens.scenario(data)) == ["scenario drill: seed 7, 0s of 1m30s"]
    data |= {"total": None, "next": "fail all", "next_at": 30.0}
    assert list(screens.scenario(data))[1:] == ["next at 30s: fail all"]
    assert list(screens.scenario(None)) == ["no scenario is running"]
    data |= {"ending": "stopped", "elapsed": 12.0, "total": 90.0, "next": ""}
    assert list(screens.scenario(data)) == ["scenario drill: seed 7, stopped after 12s of 1m30s"]


EVENT = {
    "number": 3,
    "time": 1700000000.0,
    "kind": "CardFailed",
    "subject": "nvidia/0",
    "message": "unhealthy",
    "warning": True,
}


def test_events() -> None:
    assert list(screens.events([EVENT, EVENT | {"subject": "", "message": "x"}])) == [
        "    3  2023-11-14 22:13:20  CardFailed              nvidia/0: unhealthy",
        "    3  2023-11-14 22:13:20  CardFailed              x",
    ]


def in_terminal(monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "")


def test_in_a_narrow_terminal_the_lines_of_an_event_hang_below_its_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_terminal(monkeypatch)
    long = EVENT | {"message": "unhealthy: Xid 79 (GPU has fallen off the bus)"}
    assert list(screens.events([long])) == [
        "    3  2023-11-14 22:13:20  CardFailed  nvidia/0: unhealthy: Xid 79 (GPU has",
        "                            fallen off the bus)",
    ]


def test_in_a_wide_terminal_the_lines_of_an_event_hang_below_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_terminal(monkeypatch, 130)
    first, second = screens.events([EVENT | {"message": "word " * 20}])
    assert first.index("nvidia/0: word") == second.index("word") == 52
    assert len(first) <= 130


def test_what_a_command_did_is_folded_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    in_terminal(monkeypatch)
    words = "2 cards now unhealthy: mlu/0, mlu/1 (no power, because somebody pulled the plugs)"
    assert list(screens.summary({"summary": [words, "done"]})) == [
        "2 cards now unhealthy: mlu/0, mlu/1 (no power, because somebody pulled the",
        "  plugs)",
        "done",
    ]


def test_a_number_stays_with_what_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    in_terminal(monkeypatch, 90)
    devices = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30, "nvidia.com/gpumem": 16384}
    holder = {
        "namespace": "default",
        "pod": "trainer",
        "container": "main",
        "devices": devices,
        "memory": 16384,
        "cores": 30,
        "load": {"busy": 0, "memory": 0},
    }
    lines = shown(status(cards=[card(holders=[holder])])).splitlines()
    assert [line.split("of 16384")[-1].strip() for line in lines[-3:]] == [
        "1 nvidia.com/gpu,",
        "30 nvidia.com/gpucores,",
        "16384 nvidia.com/gpumem",
    ]
    assert not any("\xa0" in line for line in lines)


def test_what_a_real_plugin_calls_a_card_is_one_line() -> None:
    text = shown(status(cards=[card(uuid="GPU-\x1b[2J\n", model="x" * 5000)]))
    assert "GPU-\\x1b[2J\\n" in text
    assert all(line.isprintable() and len(line) < 1000 for line in text.splitlines())


def dra_driver(**changes: Any) -> dict[str, Any]:
    claims = {"default/a": ["hami-gpu-0"]}
    return {
        "devices": 2, "slices": 1, "claims": claims, "claim_errors": 3, "error": "", **changes,
    }  # fmt: skip


def test_drivers_of_dra_are_a_table_and_missing_resources_no_matter_beside_them() -> None:
    text = shown(status(resources=[], views={"dra": {"hami-core-gpu.io": dra_driver()}}))
    assert "No resources are registered" not in text
    (line,) = (line for line in text.splitlines() if line.startswith("hami-core-gpu.io"))
    assert line.split() == ["hami-core-gpu.io", "2", "1", "1", "3", "registered"]


def test_a_driver_that_is_not_ready_says_why_and_not_that_it_failed() -> None:
    why = "the kubelet hasn't registered it yet"
    ill = dra_driver(error=why)
    text = shown(status(failures={"dra": f"d.io: {why}"}, views={"dra": {"d.io": ill}}))
    assert f"not ready: {why}" in text
    assert text.splitlines()[1] == f"not working: dra: d.io: {why}"
