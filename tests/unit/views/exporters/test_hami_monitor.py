"""The metrics of HAMi's monitor, and that they agree with dcgm-exporter's."""

import re

from hami_mock.faults.actions import Action, perform
from hami_mock.node.holders import Load
from hami_mock.views.exporters.hami_monitor import LastWork
from hami_mock.views.exporters.pages import DcgmPage, MonitorPage
from tests.makers import CAMBRICON
from tests.unit.builders import NODE, cards
from tests.unit.views.exporters.rig import ShownState, instance, named, samples, shown

TRAINER = ("team", "trainer", "main")
SIDE = ("team", "trainer", "side")
MIB = 1024 * 1024
NAMES = {
    "hami_host_gpu_memory_used_bytes",
    "hami_host_gpu_utilization_ratio",
    "hami_host_gpu_memory_controller_utilization_ratio",
    "hami_vgpu_memory_used_bytes",
    "hami_vgpu_memory_limit_bytes",
    "hami_vgpu_memory_context_bytes",
    "hami_vgpu_memory_module_bytes",
    "hami_vgpu_memory_buffer_bytes",
    "hami_container_device_memory_bytes",
    "hami_container_device_utilization_ratio",
    "hami_container_last_kernel_elapsed_seconds",
    "hami_build_info",
}
LEGACY = {
    "HostGPUMemoryUsage",
    "HostCoreUtilization",
    "vGPU_device_memory_usage_in_bytes",
    "vGPU_device_memory_limit_in_bytes",
    "Device_memory_desc_of_container",
    "Device_utilization_desc_of_container",
    "Device_last_kernel_of_container",
}


def busy_state() -> ShownState:
    """Two containers of a pod on the first card, one of them on the second too."""
    state = shown(2)
    first, second = state.node.cards
    state.hold(first, SIDE, busy=15, memory=100)
    state.hold(first, TRAINER, busy=40, memory=2048)
    state.hold(second, TRAINER, busy=70, memory=300)
    return state


def text_of(state: ShownState, *, has_legacy: bool = False) -> str:
    work = LastWork()
    work.note(state.loads)
    return MonitorPage(state, work, has_legacy=has_legacy).render().decode()


def test_the_names_are_the_monitors_and_the_old_ones_come_on_request() -> None:
    def names(text: str) -> set[str]:
        return set(re.findall(r"# TYPE (\S+) gauge", text))

    assert names(text_of(busy_state())) == NAMES
    assert names(text_of(busy_state(), has_legacy=True)) == NAMES | LEGACY


def test_each_container_has_its_own_rows_per_card() -> None:
    state = busy_state()
    first, second = (card.uuid for card in state.node.cards)
    found = samples(text_of(state))
    rows = named(found, "hami_container_device_utilization_ratio")
    assert [
        (own["container"], own["device_uuid"], own["vdevice_index"], value) for own, value in rows
    ] == [("side", first, "0", 15), ("main", first, "0", 40), ("main", second, "1", 70)]
    assert rows[0][0] == {
        "namespace": "team",
        "pod": "trainer",
        "container": "side",
        "vdevice_index": "0",
        "device_uuid": first,
        "zone": "vGPU",
    }
    used = named(found, "hami_vgpu_memory_used_bytes")
    assert [value for _, value in used] == [100 * MIB, 2048 * MIB, 300 * MIB]
    assert {value for _, value in named(found, "hami_vgpu_memory_limit_bytes")} == {8192 * MIB}


def test_context_module_and_buffers_add_up_to_what_is_used() -> None:
    found = samples(text_of(busy_state()))
    parts = [
        [value for _, value in named(found, f"hami_vgpu_memory_{part}_bytes")]
        for part in ("context", "module", "buffer")
    ]
    used = [value for _, value in named(found, "hami_vgpu_memory_used_bytes")]
    assert [sum(each) for each in zip(*parts, strict=True)] == used
    assert min(map(min, parts)) >= 0


def test_the_old_description_of_memory_has_its_parts_in_labels() -> None:
    found = samples(text_of(busy_state(), has_legacy=True))
    rows = named(found, "Device_memory_desc_of_container")
    for own, value in rows:
        assert sum(int(own[part]) for part in ("context", "module", "data", "offset")) == value
    assert [own["ctrname"] for own, _ in rows] == ["side", "main", "main"]
    ((own, _), *_) = named(found, "HostCoreUtilization")
    assert own["nodeid"] == NODE


def test_it_says_of_a_card_what_dcgm_says() -> None:
    state = busy_state()
    found = samples(text_of(state) + DcgmPage(state, "1.2").render().decode())

    def per_card(name: str, label: str) -> dict[str, float]:
        return {own[label]: value for own, value in named(found, name)}

    busy = per_card("DCGM_FI_DEV_GPU_UTIL", "UUID")
    assert per_card("hami_host_gpu_utilization_ratio", "device_uuid") == busy
    used = per_card("DCGM_FI_DEV_FB_USED", "UUID")
    host = per_card("hami_host_gpu_memory_used_bytes", "device_uuid")
    assert {uuid: value / MIB for uuid, value in host.items()} == used
    copying = per_card("hami_host_gpu_memory_controller_utilization_ratio", "device_uuid")
    assert copying == per_card("DCGM_FI_DEV_MEM_COPY_UTIL", "UUID")
    ((own, _), *_) = named(found, "hami_host_gpu_utilization_ratio")
    assert own["device_type"] == f"NVIDIA-{state.node.cards[0].model.product}"
    assert (own["node"], own["device_index"], own["zone"]) == (NODE, "0", "vGPU")


def test_a_pod_that_is_gone_and_a_lost_card_leave_nothing() -> None:
    state = busy_state()
    first, second = state.node.cards
    work = LastWork()
    page = MonitorPage(state, work)
    assert "trainer" in page.render().decode()
    perform(Action("lose", (first.uuid,)), state)
    assert first.uuid not in page.render().decode()
    state.held.clear()
    text = page.render().decode()
    assert "trainer" not in text
    assert second.uuid in text


def test_other_makers_cards_are_not_monitored() -> None:
    state = ShownState(cards(1, CAMBRICON))
    assert "hami_host" not in text_of(state)


def test_a_container_has_an_idle_time_only_once_it_has_worked() -> None:
    now = 100.0
    work = LastWork(lambda: now)
    first, second = ("GPU-1", TRAINER), ("GPU-1", SIDE)
    work.note({first: Load(5, 0), second: Load(0, 10)})
    now = 107.0
    assert work.idle() == {first: 7.0}
    work.note({first: Load(0, 0), second: Load(1, 10)})
    now = 109.0
    assert work.idle() == {first: 9.0, second: 2.0}
    work.note({second: Load(0, 0)})
    assert work.idle() == {second: 2.0}


def test_who_has_not_worked_yet_lacks_the_row_of_its_idle_time() -> None:
    state = shown(1)
    (card,) = state.node.cards
    state.hold(card, TRAINER, busy=0)
    state.hold(card, SIDE, busy=3)
    rows = named(samples(text_of(state)), "hami_container_last_kernel_elapsed_seconds")
    assert [(own["container"], value) for own, value in rows] == [("side", 0)]


def test_an_instance_of_a_card_says_whose_it_is() -> None:
    state = shown(1)
    (card,) = state.node.cards
    state.hold(card, TRAINER, instances=(instance(0), instance(3)))
    found = samples(text_of(state, has_legacy=True))
    assert [value for _, value in named(found, "hami_mig_device_info")] == [1, 1]
    assert named(found, "hami_mig_device_info")[1][0] == {
        "namespace": "team",
        "pod": "trainer",
        "container": "main",
        "vdevice_index": "1",
        "device_uuid": card.uuid,
        "zone": "vGPU",
        "mig_uuid": "MIG-3",
        "profile": "1g.5gb",
        "gpu_instance_id": "10",
        "compute_instance_id": "0",
    }
    assert [labels["instanceid"] for labels, _ in named(found, "MigInfo")] == ["7", "10"]
