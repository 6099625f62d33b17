import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.kubelet.wire import MESSAGE_LIMIT
from hami_mock.node.sizing import Past
from hami_mock.node.ways import Permission
from hami_mock.sources.annotated.derive import Before, derive, relevant
from hami_mock.vendors import Role
from tests.makers import BY_WORD
from tests.unit.sources.annotated.nodes import (
    AMD,
    ASCEND,
    NVIDIA,
    SAMPLES,
    card,
    cards,
    derived,
    node,
    numbers,
    settings,
)

REGISTERS = [vendor.node.register for vendor in BY_WORD.values() if vendor.node.register]
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "devmem": st.integers(0, 300_000),
            "devcore": st.integers(0, 400),
            "index": st.integers(0, 20),
            "health": st.booleans(),
        }
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_the_real_plugin_does_not_register_comes_of_its_annotation(sample: str) -> None:
    register, text, counts = SAMPLES[sample]
    found = derived(node({register: text}))
    assert numbers(found.node) == counts
    assert found.reasons == ()
    assert found.registers == {register}


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_count_resource_is_always_the_real_plugins(sample: str) -> None:
    register, text, _ = SAMPLES[sample]
    found = derived(node({register: text}))
    assert all(resource.offer.role is not Role.SLOTS for resource in found.node.resources)


def test_the_vendors_of_a_node_do_not_disturb_each_other() -> None:
    annotations = {register: text for register, text, _ in SAMPLES.values()}
    found = derived(node(annotations))
    ids = [next(iter(r.devices.ids(r.cards[0]))) for r in found.node.resources]
    assert len(ids) == len(set(ids))
    assert found.reasons == ()


def test_a_card_is_what_the_annotation_says() -> None:
    row = card("GPU-7", index=3, devmem=1000, numa=1, type="NVIDIA-X", health=False)
    found = derived(node(cards(row)))
    (only,) = found.node.cards
    assert (only.name, only.uuid, only.memory, only.numa, only.model.name) == (
        "nvidia/3",
        "GPU-7",
        1000,
        1,
        "NVIDIA-X",
    )
    assert found.ill == {"GPU-7": "HAMi's annotation says so"}


def test_cards_without_an_index_are_numbered_by_their_ids() -> None:
    found = derived(node({NVIDIA: "GPU-b,1,10,100,NVIDIA,0,true:GPU-a,1,10,100,NVIDIA,0,true:"}))
    assert [(c.index, c.uuid) for c in found.node.cards] == [(0, "GPU-a"), (1, "GPU-b")]


def test_the_order_in_the_annotation_means_nothing() -> None:
    one, other = card("GPU-1"), card("GPU-2", index=1)
    assert (
        derived(node(cards(one, other))).node.cards == derived(node(cards(other, one))).node.cards
    )


@given(ROWS, st.integers(1, 64))
def test_counts_are_those_of_the_formulas(rows: list[dict[str, Any]], factor: int) -> None:
    rows = [card(f"GPU-{i}", **row) for i, row in enumerate(rows)]
    found = derived(node(cards(*rows)), nvidia_memory_factor=factor)
    memory = sum(row["devmem"] for row in rows) // factor
    expected = {
        "nvidia.com/gpumem": memory,
        "nvidia.com/gpucores": sum(row["devcore"] for row in rows),
        "nvidia.com/gpumem-percentage": 100 * len(rows),
    }
    got = numbers(found.node)
    assert all(expected[name] == count for name, count in got.items())
    for name, count in expected.items():
        # Never silently: what isn't there has its reason.
        if name not in got:
            assert count == 0 or count * 16 > MESSAGE_LIMIT
            assert any(reason.startswith(name) for reason in found.reasons)


@given(
    st.dictionaries(
        st.sampled_from(REGISTERS),
        st.text(max_size=40)
        | st.sampled_from([text for _, text, _ in SAMPLES.values()])
        | st.sampled_from([text[:-9] for _, text, _ in SAMPLES.values()]),
        max_size=4,
    ),
    st.dictionaries(
        st.sampled_from(
            ["cambricon.com/real-mlu-counts", "iluvatar.ai/MR-V100.vCore", "huawei.com/Ascend910"]
        ),
        st.integers(-(10**12), 10**12) | st.text(max_size=3),
    ),
)
def test_no_garbage_is_too_much(annotations: dict[str, str], allocatable: dict[str, Any]) -> None:
    found = derived(node(annotations, allocatable=allocatable))
    assert found.node.cards or found.reasons
    assert all(resource.count for resource in found.node.resources)
    assert all(resource.list_size() <= MESSAGE_LIMIT for resource in found.node.resources)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the value '' must be JSON"),
        ("[]", "the value lists no devices"),
        ("{", "not valid JSON"),
        ('[{"id":"GPU-1","devmem":"x"}]', "device 0 (GPU-1): devmem: 'x' must be a whole number"),
        ('[{"id":"GPU-1"},{"id":"GPU-1"}]', "the ID 'GPU-1' must be present and unique"),
        ('[{"devmem":1}]', "the ID '' must be present and unique"),
        ('[{"id":"GPU-1","devmem":-1}]', "memory and cores must not be negative"),
        ("GPU-1,10,32768:", "7 or 9 fields"),
    ],
)
def test_a_malformed_annotation_is_a_reason_and_no_count(text: str, reason: str) -> None:
    found = derived(node({NVIDIA: text}))
    assert numbers(found.node) == {}
    (only,) = found.reasons
    assert only.startswith(f"{NVIDIA}: ")
    assert reason in only.replace("the value: ''", "the value ''")


def test_without_anything_the_node_says_so() -> None:
    assert derived(node()).reasons == (
        "node node-a has no annotation with cards from a HAMi plugin yet, and no resource "
        "that cards could be derived from",
    )


def test_a_plugin_that_is_not_hamis_is_named() -> None:
    (reason,) = derived(node(capacity={"nvidia.com/gpu": 2})).reasons
    assert reason.startswith(f"{NVIDIA}: there is no such annotation yet, although the node has")


def test_an_annotation_that_a_plugin_left_behind_counts_for_nothing() -> None:
    document = node(cards(card("GPU-1")), capacity={"nvidia.com/gpu": "0"})
    found = derived(document)
    assert numbers(found.node) == {}
    assert "the plugin that wrote it is gone" in found.reasons[0]


def test_a_vanished_annotation_is_a_reason() -> None:
    found = derived(node(), Before(registers={NVIDIA}))
    assert found.reasons == (
        f"{NVIDIA}: the annotation is gone, and so are the resources derived from it",
    )


def test_a_list_over_the_limit_is_left_out_with_the_factor_that_fits() -> None:
    rows = [card(f"GPU-{i}", index=i, devmem=81920) for i in range(8)]
    found = derived(node(cards(*rows)))
    assert "nvidia.com/gpumem" not in numbers(found.node)
    assert numbers(found.node)["nvidia.com/gpucores"] == 800
    (reason,) = found.reasons
    assert reason.startswith("nvidia.com/gpumem: left out: 655360 devices need a list of ")
    assert "the smallest memory factor that fits is 3 (--nvidia-memory-factor" in reason


def test_for_cards_without_a_factor_in_hami_none_is_named() -> None:
    rows = [card(f"GPU-{i}", index=i, devmem=196592, type="AMD-MI300X") for i in range(2)]
    (reason,) = derived(node({AMD: json.dumps(rows)})).reasons
    assert reason.startswith("amd.com/gpumem: left out: 393184 devices need a list of ")
    assert "leave it out with an empty name (--amd-resource-memory-name '')" in reason


@pytest.mark.parametrize(("version", "unit"), [("v1.35.0", 4), ("v1.36.1", 256), ("", 256)])
def test_auto_picks_what_the_nodes_kubelet_bears(version: str, unit: int) -> None:
    rows = [card(f"GPU-{i}", index=i, devmem=81920) for i in range(8)]
    found = derived(node(cards(*rows), version=version), nvidia_memory_factor="auto")
    assert numbers(found.node)["nvidia.com/gpumem"] == 655360 // unit


def test_the_kubelet_holds_no_opinion_of_which_cards_units_a_pod_has() -> None:
    """As devices of a plugin, units of a failed card might be those of a pod on another."""
    document = node(cards(card("GPU-a"), card("GPU-b")), version="v1.35.8")
    found = derive(document, settings(), permission=Permission(is_allowed=True)).node
    assert {(each.in_status, each.why) for each in found.resources} == {
        (True, "with HAMi: its scheduler decides which card's units a pod gets")
    }


def test_devices_keep_their_ids_over_changes() -> None:
    small = derived(node(cards(card("GPU-1", devmem=10), card("GPU-3", index=3, devmem=10))))
    past = Past({r.name: r.devices for r in small.node.resources})
    rows = (card("GPU-2", index=0, devmem=10), card("GPU-3", index=3, devmem=12))
    large = derived(node(cards(*rows)), Before(past))
    before, after = (
        {
            c.uuid: set(r.devices.ids(c))
            for r in found.node.resources
            if r.name == "nvidia.com/gpumem"
            for c in r.cards
        }
        for found in (small, large)
    )
    assert before["GPU-3"] < after["GPU-3"]
    assert not after["GPU-2"] & before["GPU-1"]
    assert large.node.retired == 10 + 100 + 100


def test_what_the_user_named_is_what_it_is_called() -> None:
    register, text, _ = SAMPLES["Ascend"]
    found = derived(node({register: text}), ascend_resource_memory_name="example.com/npu-memory")
    assert numbers(found.node) == {"example.com/npu-memory": 65536}


CONFIG = """
vnpus:
  hamiVnpuCore: true
  configs:
  - {commonWord: Ascend910B3, chipName: 910B3, resourceName: x.com/npu,
     resourceMemoryName: x.com/npu-mem, resourceCoreName: x.com/npu-core, memoryFactor: 4}
  - {commonWord: Ascend999, chipName: 999, resourceName: x.com/n9, resourceMemoryName: x.com/n9-mem}
"""


def test_chips_have_the_names_and_units_of_the_device_configuration() -> None:
    _, text, _ = SAMPLES["Ascend"]
    found = derived(node({ASCEND: text}), config=CONFIG)
    assert numbers(found.node) == {"x.com/npu-mem": 16384, "x.com/npu-core": 100}
    of_file = derived(node({"hami.io/node-register-Ascend999": text}), config=CONFIG)
    assert numbers(of_file.node) == {"x.com/n9-mem": 65536}


@pytest.mark.parametrize(("said", "cores"), [("true", True), ("false", False)])
def test_a_nodes_own_word_decides_on_cores_of_ascend(said: str, cores: bool) -> None:
    _, text, _ = SAMPLES["Ascend"]
    found = derived(node({ASCEND: text, "hami-vnpu-core": said}), config=CONFIG)
    assert ("x.com/npu-core" in numbers(found.node)) is cores


def test_two_chips_of_a_vendor_can_not_be_told_apart() -> None:
    _, text, _ = SAMPLES["Ascend"]
    other = "hami.io/node-register-Ascend910A"
    found = derived(node({ASCEND: text, other: text.replace("0E3A", "1E3A")}))
    assert numbers(found.node) == {"huawei.com/Ascend910A-memory": 65536}
    assert found.reasons[0].startswith(f"{ASCEND}: left out: the cards of a vendor must be of one")


def test_a_name_that_two_have_is_taken_once() -> None:
    register, text, _ = SAMPLES["Hygon"]
    document = node({register: text, **cards(card("GPU-1"))})
    found = derived(
        document, hygon_cards=0, resource_mem="x.com/m", hygon_resource_memory_name="x.com/m"
    )
    assert numbers(found.node)["x.com/m"] == 32768
    assert any(reason.startswith("x.com/m: left out:") for reason in found.reasons)


def test_heartbeats_and_handshakes_do_not_matter() -> None:
    chosen = settings()
    quiet = node(cards(card("GPU-1")))
    other = json.loads(json.dumps(quiet))
    other["metadata"]["annotations"]["hami.io/node-handshake"] = "Requesting_2026-01-01 00:00:00"
    other["status"]["conditions"] = [{"type": "Ready"}]
    assert relevant(quiet, chosen) == relevant(other, chosen)
    other["metadata"]["annotations"][AMD] = "[]"
    assert relevant(quiet, chosen) != relevant(other, chosen)
