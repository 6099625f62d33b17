"""The other makers' exporters: the names that HAMi-WebUI and their own dashboards ask for."""

from collections.abc import Iterator

import pytest

from hami_mock.faults.actions import Action, perform
from hami_mock.node.pods import Pod
from hami_mock.vendors import VENDORS, Vendor
from hami_mock.vendors.exporter import Metric
from hami_mock.vendors.labelling import CardsHere, LabelSet
from hami_mock.views.exporters.pages import VendorPages
from hami_mock.views.exporters.values import VALUES
from tests.makers import AMD, ASCEND, CAMBRICON, HYGON, ILUVATAR, METAX, METAX_GPU
from tests.unit.builders import NODE, cards
from tests.unit.vendors.labelled import cards_of
from tests.unit.views.exporters.rig import Samples, ShownState, named, samples, shown

TRAINER = ("team", "trainer", "main")
OTHER = ("team", "other", "main")
MIB = 1024 * 1024


def held(vendor: Vendor) -> tuple[ShownState, str, Samples]:
    """A card that one container holds, its UUID, and what is said of it."""
    state = shown(1, vendor)
    (card,) = state.node.cards
    state.hold(card, TRAINER, busy=40, memory=1000)
    state.pods["team", "trainer"] = Pod("team", "trainer", "uid-1")
    return state, card.uuid, samples(VendorPages(state).render().decode())


def all_metrics() -> Iterator[Metric]:
    for vendor in VENDORS:
        if vendor.exporter:
            yield from vendor.exporter().metrics


@pytest.mark.parametrize(
    ("vendor", "name", "labels", "value"),
    [
        (CAMBRICON, "mlu_utilization", {"mlu": "0", "node": NODE}, 55),
        (CAMBRICON, "mlu_memory_used", {}, 4096 * MIB),
        (CAMBRICON, "mlu_temperature", {}, 48),
        (CAMBRICON, "mlu_power_usage", {}, 180),
        (CAMBRICON, "mlu_fan_speed", {}, -1),
        (CAMBRICON, "mlu_health", {}, 1),
        (ASCEND, "npu_chip_info_utilization", {"id": "0", "pod_name": "trainer"}, 55),
        (ASCEND, "npu_chip_info_hbm_used_memory", {"container_name": "main"}, 4096),
        (ASCEND, "npu_chip_info_power", {"namespace": "team"}, 180.2),
        (ASCEND, "npu_chip_info_health_status", {"node": NODE}, 1),
        (HYGON, "dcu_utilizationrate", {"minor_number": "0", "dcu_pod_name": "trainer"}, 55),
        (HYGON, "dcu_usedmemory_bytes", {"node": NODE}, 4096 * MIB),
        (HYGON, "dcu_temp", {"node": NODE}, 48),
        (HYGON, "vdcu_percent", {"pod_uuid": "uid-1", "container_name": "main"}, 40),
        (HYGON, "vdcu_usage_memory_size", {"pod_uuid": "uid-1"}, 1000 * MIB),
        (METAX, "mx_gpu_usage", {"exported_pod": "trainer", "Hostname": NODE}, 55),
        (METAX, "mx_memory_used", {"type": "vram"}, 4096 * 1024),
        (METAX, "mx_board_power", {}, 180_250),
        (METAX, "mx_chip_hotspot_temp", {}, 48),
        (METAX, "mx_gpu_state", {"deviceId": "0"}, 1),
        (METAX, "mx_sgpu_usage", {"Hostname": NODE, "exported_container": "main"}, 40),
        (METAX, "mx_sgpu_used_memory", {"deviceId": "0"}, 1000 * 1024),
        (ILUVATAR, "ix_gpu_utilization", {"gpu": "0", "node_name": NODE, "pod": "trainer"}, 55),
        (ILUVATAR, "ix_mem_used", {"namespace": "team", "container": "main"}, 4096),
        (ILUVATAR, "ix_sm_clock", {}, 1380),
        (ILUVATAR, "ix_xid_errors", {}, 0),
        (AMD, "gpu_gfx_activity", {"gpu_id": "0", "hostname": NODE, "pod": "trainer"}, 55),
        (AMD, "gpu_package_power", {}, 180.2),
        (AMD, "gpu_used_vram", {}, 4096),
        (AMD, "gpu_junction_temperature", {}, 48),
    ],
)
def test_a_makers_metrics_have_its_names_labels_and_units(
    vendor: Vendor, name: str, labels: dict[str, str], value: float
) -> None:
    _, uuid, found = held(vendor)
    ((own, shown_value),) = named(found, name)
    assert uuid in own.values()
    assert labels.items() <= own.items()
    assert shown_value == pytest.approx(value)


@pytest.mark.parametrize(
    ("vendor", "name", "labels"),
    [
        (CAMBRICON, "mlu_utilization", "driver mcu mlu model node sn uuid"),
        (
            ASCEND,
            "npu_chip_info_power",
            "id model_name vdie_id pcie_bus_info node namespace pod_name container_name",
        ),
        (
            HYGON,
            "dcu_temp",
            "device_id minor_number name node pcieBus_number"
            " dcu_pod_namespace dcu_pod_name container",
        ),
        (
            METAX,
            "mx_chip_hotspot_temp",
            "deviceId uuid Hostname bios_version driver_version modelName"
            " exported_namespace exported_pod exported_container",
        ),
        (
            ILUVATAR,
            "ix_power_usage",
            "driver gpu ixml name node_name serial uuid namespace pod container",
        ),
        (
            AMD,
            "gpu_package_power",
            "card_model card_series card_vendor deployment_mode driver_version"
            " gpu_compute_partition_type gpu_id gpu_memory_partition_type gpu_partition_id gpu_uuid"
            " hostname serial_number container namespace pod",
        ),
    ],
)
def test_a_row_has_all_labels_of_its_exporter(vendor: Vendor, name: str, labels: str) -> None:
    _, _, found = held(vendor)
    ((own, _),) = named(found, name)
    assert own.keys() == set(labels.split())


@pytest.mark.parametrize(
    ("vendor", "name", "labels"),
    [
        (ASCEND, "npu_chip_info_power", "namespace pod_name container_name"),
        (HYGON, "dcu_temp", "dcu_pod_namespace dcu_pod_name container"),
        (METAX, "mx_gpu_usage", "exported_namespace exported_pod exported_container"),
        (ILUVATAR, "ix_gpu_utilization", "namespace pod container"),
        (AMD, "gpu_gfx_activity", "namespace pod container"),
    ],
)
def test_a_card_that_nobody_holds_has_empty_labels(vendor: Vendor, name: str, labels: str) -> None:
    found = samples(VendorPages(shown(1, vendor)).render().decode())
    ((own, _),) = named(found, name)
    assert [own[label] for label in labels.split()] == ["", "", ""]


def test_iluvatars_labels_and_metrics_tell_one_driver() -> None:
    _, _, found = held(ILUVATAR)
    ((own, _),) = named(found, "ix_gpu_utilization")
    here = CardsHere(cards_of("iluvatar", "BI-V150"))
    told = ILUVATAR.labels.of(LabelSet.VENDORS, here)["iluvatar.com/ix.driver-version.full"]
    assert own["driver"] == own["ixml"] == told


def test_a_container_of_cambricons_is_joined_to_its_card_by_uuid() -> None:
    state, uuid, _ = held(CAMBRICON)
    state.hold(state.node.cards[0], OTHER)
    found = samples(VendorPages(state).render().decode())
    rows = [own for own, value in named(found, "mlu_container") if value == 1]
    assert [(own["pod"], own["type"]) for own in rows] == [
        ("trainer", "mlu370.smlu.vcore"), ("other", "mlu370.smlu.vcore"),
        ("trainer", "mlu370.smlu.vmemory"), ("other", "mlu370.smlu.vmemory"),
    ]  # fmt: skip
    assert {own["uuid"] for own in rows} == {uuid}
    ((card, _),) = named(found, "mlu_utilization")
    assert "pod" not in card


@pytest.mark.parametrize("vendor", [ASCEND, HYGON, METAX, ILUVATAR, AMD])
def test_a_card_that_several_hold_is_ascribed_to_none(vendor: Vendor) -> None:
    state, _, _ = held(vendor)
    (card,) = state.node.cards
    state.hold(card, OTHER)
    assert vendor.exporter is not None
    busy = next(m.name for m in vendor.exporter().metrics if m.reads == "busy")
    ((own, _),) = named(samples(VendorPages(state).render().decode()), busy)
    assert "trainer" not in own.values()


def test_a_card_that_is_given_out_whole_has_no_slices() -> None:
    _, _, found = held(METAX_GPU)
    assert named(found, "mx_gpu_usage")
    assert not named(found, "mx_sgpu_usage")


def test_the_makers_are_served_together_and_each_alone() -> None:
    state = ShownState([*cards(1, CAMBRICON), *cards(1, ASCEND), *cards(1)])
    pages = VendorPages(state)
    assert [*pages.makers] == ["cambricon", "iluvatar", "ascend", "hygon", "metax", "amd"]
    together = samples(pages.render().decode())
    assert named(together, "mlu_utilization")
    assert named(together, "npu_chip_info_power")
    assert not [name for name, _ in together if name.startswith("DCGM")]
    assert pages.page("cambricon")() + pages.page("ascend")() == pages.render("cambricon", "ascend")
    assert not named(samples(pages.page("ascend")().decode()), "mlu_utilization")


def test_a_failed_card_is_not_healthy_and_a_lost_one_is_gone() -> None:
    state, uuid, _ = held(CAMBRICON)
    perform(Action("fail", (uuid,)), state)
    ((_, health),) = named(samples(VendorPages(state).render().decode()), "mlu_health")
    assert health == 0
    perform(Action("lose", (uuid,)), state)
    assert VendorPages(state).render().decode() == ""


def test_every_metric_reads_a_value_that_there_is_and_says_what_it_is() -> None:
    for metric in all_metrics():
        assert {metric.reads, *(reads for _, reads, _ in metric.live)} <= set(VALUES), metric
        assert metric.help.endswith("."), metric
        assert metric.kind in ("gauge", "counter"), metric


def test_makers_do_not_share_names() -> None:
    owners: dict[str, set[str]] = {}
    for vendor in VENDORS:
        for metric in vendor.exporter().metrics if vendor.exporter else ():
            owners.setdefault(metric.name, set()).add(vendor.maker)
    assert [name for name, makers in owners.items() if len(makers) > 1] == []
