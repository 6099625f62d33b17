"""Resources without a name: nobody registers them, and the cards are as large as before."""

import json
from pathlib import Path
from typing import Any

import pytest

from hami_mock.cli.plan import plan_data
from hami_mock.doctor.case import NodeCase
from hami_mock.doctor.examine import examine_node
from hami_mock.doctor.finding import Severity
from hami_mock.node.advice import warnings
from hami_mock.node.state import NodeState
from hami_mock.settings.hami_config import device_config
from hami_mock.settings.settings import load
from hami_mock.sources.annotated.derive import derive
from hami_mock.sources.configured import configured_node
from hami_mock.sources.planning import Plan
from hami_mock.vendors import VENDORS, Role, Vendor
from hami_mock.vendors.nvidia_labels import TIMESTAMP
from hami_mock.views.hami.registration import registration
from tests.unit.builders import NODE, config_file, counts, laid_out, problems_of
from tests.unit.doctor.patients import NOW, node
from tests.unit.sources.annotated.nodes import ASCEND, NVIDIA, SAMPLES

WITHOUT_MEMORY = {
    "nvidia": "resource-mem",
    "ascend": "ascend-resource-memory-name",
    "amd": "amd-resource-memory-name",
    "kunlun": "kunlun-resource-memory-name",
    "hygon": "hygon-resource-memory-name",
}


def named(flags: dict[str, str]) -> set[str]:
    return {resource.name for resource in configured_node(load(flags), None).resources}


@pytest.mark.parametrize(
    ("key", "model", "cards", "slots"),
    [
        ("amd", "MI300X", 2, 20),
        ("kunlun", "P800", 8, 80),
        ("ascend", "Ascend910B3", 8, 32),
        ("nvidia", "A100-SXM4-80GB", 8, 80),
        ("hygon", "K100-AI", 8, 32),
    ],
)
def test_a_large_node_needs_no_factor_with_hami(
    key: str, model: str, cards: int, slots: int
) -> None:
    flags = {"hami": "on", "vendors": key, f"{key}-cards": str(cards), f"{key}-model": model}
    flags["node-name"] = NODE
    assert problems_of(lambda: configured_node(load(flags), None)), "with the memory it is too much"
    made = configured_node(load({**flags, WITHOUT_MEMORY[key]: ""}), (1, 37))
    count = next(resource for resource in made.resources if resource.has_slots)
    assert count.count == slots
    assert all(resource.offer.role is not Role.MEMORY for resource in made.resources)
    assert not any(warnings(resource, made, (1, 37)) for resource in made.resources)
    side = count.hami
    assert side is not None
    told = registration(NodeState(made)).annotations[side.vendor.node.register]
    total = sum(card.memory for card in made.cards)
    assert total == cards * made.cards[0].model.memory
    if told.startswith("["):
        assert sum(card["devmem"] for card in json.loads(told)) == total
    else:
        assert sum(int(card.split(",")[2]) for card in told.split(":")[:-1]) == total


@pytest.mark.parametrize(
    ("vendor", "flag"),
    [
        (vendor, offer.flag)
        for vendor in VENDORS
        for offer in vendor.offers
        if offer.role is not Role.SLOTS
    ],
    ids=lambda value: value if isinstance(value, str) else value.prefix,
)
def test_every_resource_but_the_slots_can_be_left_out(vendor: Vendor, flag: str) -> None:
    flags = {"vendors": vendor.prefix, f"{vendor.prefix}-cards": "1"}
    offer = next(offer for offer in vendor.offers if offer.flag == flag)
    assert named({**flags, flag: "a/b"}) - named({**flags, flag: ""}) == {"a/b"}
    assert named({**flags, flag: ""}) == named(flags) - {offer.name}


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.prefix)
def test_slots_need_a_name(vendor: Vendor) -> None:
    flag = next(offer.flag for offer in vendor.offers if offer.role is Role.SLOTS)
    (line,) = problems_of(lambda: load({flag: ""}))
    assert line.startswith(f"--{flag}: '' is not allowed: it must be a resource name")


def test_a_file_can_leave_out_what_a_variable_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config_file(tmp_path, 'resource-mem: ""\nresource-cores: ""')
    assert named({"config": path, "vendors": "nvidia"}) == {
        "nvidia.com/gpu",
        "nvidia.com/gpumem-percentage",
    }
    monkeypatch.setenv("HAMI_MOCK_RESOURCE_MEM", "a/mem")
    assert "a/mem" in named({"config": path, "vendors": "nvidia"})
    monkeypatch.setenv("HAMI_MOCK_RESOURCE_MEM", "")
    assert "nvidia.com/gpumem" not in named({"vendors": "nvidia"})


@pytest.mark.parametrize(
    "flag", ["mlu-core-name", "mlu-memory-name", "mthreads-resource-core-name"]
)
def test_what_hamis_scheduler_counts_cards_by_needs_a_name(flag: str) -> None:
    flags = {"hami": "on", "mthreads-cards": "1", flag: ""}
    assert problems_of(lambda: load(flags)) == (
        f"--{flag}: '' is not allowed: it must be a name with --hami on: HAMi's scheduler counts "
        "the cards by this resource",
    )
    load({**flags, "hami": "off"})


@pytest.mark.parametrize("empty", ["", " ''", " null"])
def test_hamis_configuration_can_leave_one_out(tmp_path: Path, empty: str) -> None:
    file = tmp_path / "device-config.yaml"
    file.write_text(
        "nvidia:\n"
        "  resourceCountName: a/gpu\n"
        f"  resourceMemoryName:{empty}\n"
        "vnpus:\n"
        "  configs:\n"
        "  - commonWord: Ascend910B3\n"
        "    resourceName: a/npu\n"
        f"    resourceMemoryName:{empty}\n"
    )
    flags = {"device-config-file": str(file), "hami": "on", "vendors": "nvidia,ascend"}
    assert named(flags) == {
        "a/gpu",
        "nvidia.com/gpucores",
        "nvidia.com/gpumem-percentage",
        "a/npu",
        "huawei.com/Ascend910B3-core",
    }
    assert "a/mem" in named({**flags, "resource-mem": "a/mem"})


def test_the_companion_leaves_it_out_too(tmp_path: Path) -> None:
    def offered(register: str, value: str, **flags: str) -> set[str]:
        settings = load({"source": "hami", "node-name": NODE, **flags})
        path = settings.device_config_file
        document = {"metadata": {"name": NODE, "annotations": {register: value}}}
        config = device_config.read(path) if path else None
        found = derive(document, settings, config=config)
        assert [card.memory for card in found.node.cards]
        return {resource.name for resource in found.node.resources}

    text = SAMPLES["JSON of HAMi 2.10"][1]
    assert offered(NVIDIA, text, **{"resource-mem": ""}) == {
        "nvidia.com/gpucores",
        "nvidia.com/gpumem-percentage",
    }
    chips = '[{"id":"a","count":4,"devmem":65536,"devcore":20,"type":"Ascend910B3","health":true}]'
    assert offered(ASCEND, chips) == {"huawei.com/Ascend910B3-memory"}
    assert offered(ASCEND, chips, **{"ascend-resource-memory-name": ""}) == set()
    # What the file says of the settings' chip is nothing about the node's.
    file = tmp_path / "device-config.yaml"
    file.write_text(
        "vnpus: {configs: ["
        "{commonWord: Ascend910B3, resourceName: a/3, resourceMemoryName: ''},"
        "{commonWord: Ascend310P, resourceName: a/p, resourceMemoryName: a/p-memory}]}"
    )
    configured = {"device-config-file": str(file)}
    assert offered(ASCEND, chips, **configured) == set()
    other = ASCEND.replace("910B3", "310P")
    assert offered(other, chips.replace("910B3", "310P"), **configured) == {"a/p-memory"}
    configured["ascend-resource-memory-name"] = ""
    assert offered(other, chips.replace("910B3", "310P"), **configured) == set()


def test_nothing_is_derived_for_what_is_left_out() -> None:
    document = {
        "metadata": {"name": NODE},
        "status": {"allocatable": {"huawei.com/Ascend910": "20"}},
    }
    flags = {"source": "hami", "node-name": NODE}
    assert counts(derive(document, load(flags)).node) == {"huawei.com/Ascend910-memory": 131072}
    left_out = load({**flags, "ascend-resource-memory-name": ""})
    assert counts(derive(document, left_out).node) == {}


def test_labels_and_plan_tell_the_memory_of_the_cards_all_the_same() -> None:
    flags = {"vendors": "nvidia", "labels": "all", "node-name": NODE}

    def shown(**more: str) -> dict[str, Any]:
        settings = load({**flags, **more})
        plan = Plan(configured_node(settings, None), None)
        found = plan_data(settings, plan)
        return {"cards": found["cards"], "labels": {**found["labels"], TIMESTAMP: ""}}

    left_out = shown(**{"resource-mem": ""})
    assert left_out == shown()
    assert [card["memory"] for card in left_out["cards"]] == [32768, 32768]
    assert left_out["labels"]["nvidia.com/gpu.memory"] == "32768"


def test_the_doctor_finds_nothing_wrong_with_it() -> None:
    made = laid_out(hami="on", vendors="nvidia", resource_mem="")
    told = registration(NodeState(made)).annotations
    document = node(annotations=told, resources={"nvidia.com/gpumem": None})
    assert [finding.severity for finding in examine_node(NodeCase(document, NOW, pods=()))] == [
        Severity.OK
    ]
