from pathlib import Path
from typing import Any

from hami_mock.node.sizing import Node, Past
from hami_mock.settings.settings import Settings, load
from hami_mock.sources.changes import changes
from hami_mock.sources.configured import configured_node
from tests.unit.builders import NODE, config_file

SMALL = {"iluvatar_cards": 0, "ascend_cards": 0, "mlu_cards": 0}


def settings_of(**flags: Any) -> Settings:
    memory = {} if "config" in flags else {"nvidia_memory": 50}
    values = {"node_name": NODE, **SMALL, **memory, **flags}
    return load({name.replace("_", "-"): str(value) for name, value in values.items()})


def laid_out(past: Node | None = None, **flags: Any) -> Node:
    devices = {r.name: r.devices for r in past.resources} if past else {}
    return configured_node(settings_of(**flags), None, Past(devices))


def told(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    first = laid_out(**before)
    return changes(first, laid_out(first, **after))


def test_no_change_has_no_lines() -> None:
    assert told({}, {}) == []


def test_a_card_that_comes_is_told_with_its_resources() -> None:
    assert told({"nvidia_cards": 1}, {"nvidia_cards": 2}) == [
        "nvidia/1: new (V100-SXM2-32GB 50 MiB)",
        "nvidia.com/gpu: 10 x slot → 20 x slot",
        "nvidia.com/gpucores: 100 x 1 % → 200 x 1 %",
        "nvidia.com/gpumem: 50 x 1 MiB → 100 x 1 MiB",
        "nvidia.com/gpumem-percentage: 100 x 1 % → 200 x 1 %",
    ]


def test_a_card_that_goes_is_told_with_what_is_retired() -> None:
    lines = told({"nvidia_cards": 2}, {"nvidia_cards": 1})
    assert lines[:2] == [
        "nvidia/1: gone (V100-SXM2-32GB)",
        "nvidia.com/gpu: 20 x slot → 10 x slot, 10 retired until no pod holds them",
    ]


def test_a_vendor_that_comes_and_one_that_goes() -> None:
    assert told({"nvidia_cards": 0, "mlu_cards": 1}, {"nvidia_cards": 0}) == [
        "mlu/0: gone (MLU370-X8)",
        "cambricon.com/vmlu: gone (10)",
    ]
    lines = told({"nvidia_cards": 0}, {"nvidia_cards": 0, "mlu_cards": 1})
    assert lines[-1] == "cambricon.com/vmlu: new (10 x slot)"


def test_a_card_that_becomes_another_one_is_told_with_all_that_differs(tmp_path: Path) -> None:
    plain = config_file(tmp_path, "nvidia-memory: 50")
    before = laid_out(config=plain)
    groups = "nvidia-groups: [{cards: 2, model: T4, memory: 50, numa: 1, nvlink: [[0, 1]]}]"
    after = laid_out(before, config=config_file(tmp_path, groups))
    assert changes(before, after) == [
        "nvidia/0: V100-SXM2-32GB 50 MiB → T4 50 MiB NUMA 1 link 0.0",
        "nvidia/1: V100-SXM2-32GB 50 MiB → T4 50 MiB NUMA 1 link 0.0",
    ]


def test_a_card_that_is_sliced_another_way_is_told_with_the_way() -> None:
    one = {"nvidia_cards": 1, "nvidia_model": "A100-SXM4-40GB"}
    card = "nvidia/0: A100-SXM4-40GB 50 MiB"
    assert told(one, {**one, "nvidia_mode": "mig"}) == [f"{card} → {card.split(': ')[1]} mode mig"]
    lines = told(one, {**one, "nvidia_mig": "3g.20gb,2g.10gb"})
    assert lines == [f"{card} → {card.split(': ')[1]} cut into 3g.20gb, 2g.10gb"]


def test_a_factor_changes_the_unit() -> None:
    (line,) = told({}, {"nvidia_memory_factor": 10})
    assert line.startswith("nvidia.com/gpumem: 100 x 1 MiB → 10 x 10 MiB, 90 retired")


def test_a_renamed_resource_is_one_that_goes_and_one_that_comes() -> None:
    assert told({}, {"resource_mem": "example.com/mem"}) == [
        "nvidia.com/gpumem: gone (100)",
        "example.com/mem: new (100 x 1 MiB)",
    ]


def test_a_resource_that_moves_says_where_to() -> None:
    units = ("nvidia.com/gpucores", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage")
    there = told({"units": "plugin"}, {"units": "status"})
    assert there == [f"{name}: now in the Node's status" for name in units]
    back = told({"units": "status"}, {"units": "plugin"})
    assert back == [f"{name}: now with a device plugin" for name in units]


def test_a_resource_that_waits_for_its_holders_says_so() -> None:
    before = laid_out(units="plugin")
    held = Past({r.name: r.devices for r in before.resources}, (), {"nvidia.com/gpumem"})
    after = configured_node(settings_of(units="status"), None, held)
    assert changes(before, after)[1] == (
        "nvidia.com/gpumem: to the Node's status as soon as no pod holds a device of it"
    )
    assert changes(after, after) == []
