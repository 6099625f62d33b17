"""dcgm-exporter's metrics: names, types, labels and whom a card's rows are ascribed to."""

import re
from typing import Any

import pytest

from hami_mock.faults.actions import Action, perform
from hami_mock.node.readings import Throttle
from hami_mock.views.exporters.dcgm_extras import NAMES, Window
from hami_mock.views.exporters.pages import DcgmPage
from tests.makers import CAMBRICON
from tests.unit.builders import NODE, cards
from tests.unit.views.exporters.rig import ShownState, instance, named, reading, samples, shown

GAUGES = """
SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL
XID_ERRORS FB_FREE FB_USED FB_RESERVED VGPU_LICENSE_STATUS
"""
COUNTERS = """
TOTAL_ENERGY_CONSUMPTION PCIE_REPLAY_COUNTER NVLINK_BANDWIDTH_TOTAL
"""
PROFILING = "GR_ENGINE_ACTIVE PIPE_TENSOR_ACTIVE DRAM_ACTIVE PCIE_TX_BYTES PCIE_RX_BYTES"
ORDER = """
SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION PCIE_REPLAY_COUNTER
GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL XID_ERRORS FB_FREE FB_USED FB_RESERVED
{} NVLINK_BANDWIDTH_TOTAL
VGPU_LICENSE_STATUS
"""
OF_ROWS = ("UNCORRECTABLE_REMAPPED_ROWS", "CORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_FAILURE")
OF_PAGES = ("RETIRED_SBE", "RETIRED_DBE", "RETIRED_PENDING")
ROWS = {"remapped_correctable": 2, "remapped_uncorrectable": 1, "remap_failed": False}
PAGES = {"retired_correctable": 2, "retired_uncorrectable": 1}
TRAINER = ("team", "trainer", "main")
OTHER = ("team", "other", "side")


def text_of(state: ShownState, **options: Any) -> str:
    return DcgmPage(state, "580.1", **options).render().decode()


@pytest.mark.parametrize(
    ("damage", "counted", "said"),
    [({}, (), ()), (ROWS, OF_ROWS[:2], OF_ROWS[2:]), (PAGES, OF_PAGES[:2], OF_PAGES[2:])],
    ids=["neither", "rows", "pages"],
)
def test_the_default_set_has_its_names_types_and_order(
    damage: dict[str, int], counted: tuple[str, ...], said: tuple[str, ...]
) -> None:
    state = shown(1)
    (card,) = state.node.cards
    state.readings = {card.uuid: reading(card, **damage)}
    types = re.findall(r"# TYPE (\S+) (\S+)", text_of(state))
    gauges = [f"DCGM_FI_DEV_{name}" for name in (*GAUGES.split(), *said)]
    profiling = [f"DCGM_FI_PROF_{name}" for name in PROFILING.split()]
    counters = [f"DCGM_FI_DEV_{name}" for name in (*COUNTERS.split(), *counted)]
    assert dict(types) == {
        **dict.fromkeys([*gauges, *profiling], "gauge"),
        **dict.fromkeys(counters, "counter"),
    }
    assert [name for name, _ in types] == [
        *(f"DCGM_FI_DEV_{name}" for name in ORDER.format(" ".join((*counted, *said))).split()),
        *profiling,
    ]


def test_pages_wait_to_be_retired_until_the_card_is_mended() -> None:
    state = shown(2)
    failed, _ = state.node.cards
    state.readings = {card.uuid: reading(card, **PAGES) for card in state.node.cards}
    perform(Action("fail", (failed.uuid,), {"xid": 63}), state)
    found = samples(text_of(state))
    values = {
        name: [value for _, value in named(found, f"DCGM_FI_DEV_{name}")]
        for name in (*OF_PAGES, *OF_ROWS)
    }
    assert values == {
        "RETIRED_SBE": [2, 2], "RETIRED_DBE": [1, 1], "RETIRED_PENDING": [1, 0],
        **{name: [] for name in OF_ROWS},
    }  # fmt: skip


def test_labels_stand_in_their_order_and_numbers_as_dcgm_writes_them() -> None:
    state = shown(1)
    (card,) = state.node.cards
    state.hold(card, TRAINER)
    card_part = (
        f'gpu="0",UUID="{card.uuid}",pci_bus_id="00000000:1B:00.0",device="nvidia0",'
        f'modelName="{card.model.product}",Hostname="{NODE}",DCGM_FI_DRIVER_VERSION="580.1"'
    )
    pod_part = 'container="main",namespace="team",pod="trainer"'
    lines = text_of(state).splitlines()
    assert f"DCGM_FI_DEV_GPU_UTIL{{{card_part},{pod_part}}} 55" in lines
    assert f"DCGM_FI_DEV_GPU_TEMP{{{card_part},{pod_part}}} 48" in lines
    assert f"DCGM_FI_DEV_POWER_USAGE{{{card_part},{pod_part}}} 180.250000" in lines
    assert f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{card_part},{pod_part}}} 123456789012" in lines
    assert f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{card_part},{pod_part}}} 0.554000" in lines
    assert f"DCGM_FI_PROF_PCIE_RX_BYTES{{{card_part},{pod_part}}} 2000000" in lines
    assert f"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{{{card_part},{pod_part}}} 175781" in lines
    error = f'{card_part},err_code="0",err_msg="no error",{pod_part}'
    assert f"DCGM_FI_DEV_XID_ERRORS{{{error}}} 0" in lines


def test_the_node_may_stand_in_a_label_in_small_letters() -> None:
    text = text_of(shown(1), label_names={"Hostname": "hostname"})
    assert f',hostname="{NODE}",' in text
    assert "Hostname" not in text


def test_a_card_has_one_row_and_names_a_pod_only_if_one_alone_holds_it() -> None:
    state = shown(3)
    free, single, shared = state.node.cards
    state.hold(single, TRAINER)
    state.hold(shared, TRAINER)
    state.hold(shared, OTHER)
    rows = named(samples(text_of(state)), "DCGM_FI_DEV_GPU_UTIL")
    assert [(labels["UUID"], labels.get("pod")) for labels, _ in rows] == [
        (free.uuid, None), (single.uuid, "trainer"), (shared.uuid, None),
    ]  # fmt: skip
    assert "container" not in rows[0][0]


def test_sharing_repeats_a_card_for_each_holder() -> None:
    state = shown(2)
    _, shared = state.node.cards
    state.hold(shared, OTHER, busy=10)
    state.hold(shared, TRAINER, busy=40)
    rows = named(samples(text_of(state, shares=True)), "DCGM_FI_DEV_GPU_UTIL")
    assert [(labels.get("pod"), labels.get("vgpu"), value) for labels, value in rows] == [
        (None, None, 55), ("other", "0", 55), ("trainer", "1", 55),
    ]  # fmt: skip


def test_a_lost_card_has_no_rows_and_a_failed_one_its_xid() -> None:
    state = shown(2)
    lost, failed = state.node.cards
    perform(Action("lose", (lost.uuid,)), state)
    perform(Action("fail", (failed.uuid,), {"xid": 79}), state)
    state.readings[failed.uuid] = reading(failed, last_xid=79)
    found = samples(text_of(state))
    ((labels, value),) = named(found, "DCGM_FI_DEV_XID_ERRORS")
    assert value == 79
    assert (labels["UUID"], labels["err_code"]) == (failed.uuid, "79")
    assert labels["err_msg"] == "GPU has fallen off the bus"
    assert not [key for key in found if lost.uuid in str(key)]
    perform(Action("return", (lost.uuid,)), state)
    assert len(named(samples(text_of(state)), "DCGM_FI_DEV_GPU_UTIL")) == 2


def test_a_card_that_was_not_read_yet_and_one_of_another_maker_have_no_rows() -> None:
    state = ShownState([*cards(1), *cards(1, CAMBRICON)])
    state.readings = {state.node.cards[1].uuid: reading(state.node.cards[1])}
    assert text_of(state) == ""


def test_memory_adds_up() -> None:
    found = samples(text_of(shown(1)))
    parts = [named(found, f"DCGM_FI_DEV_FB_{part}")[0][1] for part in ("USED", "FREE", "RESERVED")]
    assert sum(parts) == 32768


def test_extras_count_within_the_window() -> None:
    state = shown(2)
    calm, hot = state.node.cards
    perform(Action("fail", (hot.uuid,), {"xid": 94}), state)
    window = Window(state)
    assert f"{NAMES[1]}" in text_of(state, window=window)

    def count(name: str, **labels: str) -> list[float]:
        rows = named(samples(text_of(state, window=window)), name)
        return [value for own, value in rows if labels.items() <= own.items()]

    xids = "DCGM_EXP_XID_ERRORS_COUNT"
    ms = "300000"
    # What was before the window isn't counted.
    assert count(xids, window_size_in_ms=ms) == [0, 0]
    perform(Action("fail", (hot.uuid,), {"xid": 79}), state)
    perform(Action("fail", (hot.uuid,), {"xid": 79}), state)
    assert count(xids, xid="79", UUID=hot.uuid) == [2]
    assert count(xids, UUID=calm.uuid) == [0]
    for _ in range(10):
        window.take()
    assert count(xids) == [0, 0]


def test_extras_show_clock_events_health_and_fan() -> None:
    state = shown(2)
    calm, hot = state.node.cards
    throttles = frozenset({Throttle.POWER_CAP, Throttle.HARDWARE_THERMAL})
    state.readings[hot.uuid] = reading(hot, throttles=throttles, last_xid=79, fan=70)
    window = Window(state)
    window.take()
    perform(Action("fail", (hot.uuid,), {"xid": 79}), state)
    found = samples(text_of(state, window=window))
    events = named(found, "DCGM_EXP_CLOCK_EVENTS_COUNT")
    assert [(own.get("clock_event"), value) for own, value in events] == [
        (None, 0), ("hw_thermal", 2), ("power_cap", 2),
    ]  # fmt: skip
    health = {
        (own["UUID"], own["health_watch"]): (own["health_error_code"], value)
        for own, value in named(found, "DCGM_EXP_GPU_HEALTH_STATUS")
        if value
    }
    assert health == {
        (hot.uuid, "THERMAL"): ("DCGM_FR_CLOCK_THROTTLE_THERMAL", 10),
        (hot.uuid, "ALL"): ("DCGM_FR_FALLEN_OFF_BUS", 20),
    }
    assert len(named(found, "DCGM_EXP_GPU_HEALTH_STATUS")) == 22
    ((own, speed),) = named(found, "DCGM_FI_DEV_FAN_SPEED")
    assert (own["UUID"], speed) == (hot.uuid, 70)
    assert calm.uuid not in str(own)


@pytest.mark.parametrize("shares", [False, True])
def test_extras_have_the_same_labels_as_the_others(shares: bool) -> None:
    state = shown(1)
    (card,) = state.node.cards
    state.hold(card, TRAINER)
    found = samples(text_of(state, window=Window(state), shares=shares))
    ((usual, _),) = named(found, "DCGM_FI_DEV_GPU_UTIL")
    ((extra, _),) = named(found, "DCGM_EXP_XID_ERRORS_COUNT")
    assert extra == {**usual, "window_size_in_ms": "300000"}


# Cards that are cut.


def test_a_card_that_is_cut_has_a_row_for_each_instance_and_none_for_itself() -> None:
    state = shown(2)
    card, other = state.node.cards
    state.hold(card, TRAINER, busy=10, memory=1000, instances=(instance(0),))
    state.hold(card, OTHER, busy=40, memory=3000, instances=(instance(1), instance(2)))
    text = text_of(state)
    found = samples(text)
    used = {
        (labels["gpu"], labels.get("GPU_I_ID"), labels.get("pod")): value
        for labels, value in named(found, "DCGM_FI_DEV_FB_USED")
    }
    assert used == {
        ("0", "7", "trainer"): 1000,
        ("0", "8", "other"): 1500,
        ("0", "9", "other"): 1500,
        ("1", None, None): 4096,
    }
    rows = named(found, "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
    busy = {labels.get("GPU_I_ID"): value for labels, value in rows}
    # Of an instance, not of the card: 10 % of it are half of a fifth.
    assert busy == {"7": 0.5, "8": 1.0, "9": 1.0, None: 0.554}
    (util,) = named(found, "DCGM_FI_DEV_GPU_UTIL")
    assert util[0]["UUID"] == other.uuid
    for name in ("MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL", "NVLINK_BANDWIDTH_TOTAL"):
        assert len(named(found, f"DCGM_FI_DEV_{name}")) == 1
    part = f'modelName="{card.model.product}",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7",Hostname="{NODE}"'
    assert f'"nvidia0",{part}' in text
    assert {labels["UUID"] for labels, _ in named(found, "DCGM_FI_DEV_GPU_TEMP")} == {
        card.uuid, other.uuid,
    }  # fmt: skip


def test_the_memory_of_an_instance_adds_up() -> None:
    state = shown(1)
    (card,) = state.node.cards
    state.hold(card, TRAINER, memory=9999, instances=(instance(0, memory=5000),))
    found = samples(text_of(state))
    names = ("USED", "FREE", "RESERVED")
    amounts = [named(found, f"DCGM_FI_DEV_FB_{name}")[0][1] for name in names]
    assert sum(amounts) == 5000
    assert amounts == [5000 - 512, 0, 512]


@pytest.mark.parametrize("shares", [False, True])
def test_extras_are_of_the_card_even_if_it_is_cut(shares: bool) -> None:
    state = shown(1)
    (card,) = state.node.cards
    state.hold(card, TRAINER, instances=(instance(0), instance(1)))
    found = samples(text_of(state, window=Window(state), shares=shares))
    (row,) = named(found, "DCGM_EXP_XID_ERRORS_COUNT")
    assert row[0]["UUID"] == card.uuid
    assert "GPU_I_ID" not in row[0]


def test_an_instance_that_is_gone_leaves_nothing() -> None:
    state = shown(1)
    (card,) = state.node.cards
    page = DcgmPage(state, "580.1")
    state.hold(card, TRAINER, instances=(instance(0), instance(1)))
    assert "GPU_I_ID" in page.render().decode()
    state.held.clear()
    text = page.render().decode()
    assert "GPU_I_ID" not in text
    assert "trainer" not in text
    assert "DCGM_FI_DEV_GPU_UTIL{" in text
