import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_mock.sources.annotated.derive import Before
from tests.unit.sources.annotated.nodes import ASCEND, ILUVATAR, SAMPLES, derived, node, numbers

MLU = "cambricon.com/real-mlu-counts"
CORES = "iluvatar.ai/MR-V100.vCore"
NPU = "huawei.com/Ascend910"


@given(st.integers(1, 64))
def test_a_cambricon_card_has_ten_slots(count: int) -> None:
    found = derived(node(allocatable={MLU: str(count)}))
    assert numbers(found.node) == {"cambricon.com/vmlu": count * 10}
    assert len(found.node.cards) == count
    assert found.reasons == ()


@given(st.integers(10, 1600))
def test_iluvatar_has_a_slot_for_ten_cores(cores: int) -> None:
    found = derived(node(allocatable={CORES: str(cores)}))
    assert numbers(found.node) == {"iluvatar.ai/vgpu": cores // 10}


@given(st.integers(10, 49))
def test_ten_of_ascend_are_a_card_with_64_gib(count: int) -> None:
    found = derived(node(allocatable={NPU: str(count)}))
    assert numbers(found.node) == {"huawei.com/Ascend910-memory": count // 10 * 65536}


def test_the_core_resource_of_iluvatar_can_have_another_name() -> None:
    document = node(allocatable={"x.com/cores": "200"})
    found = derived(
        document, iluvatar_core_name="x.com/cores", iluvatar_resource_name="x.com/slots"
    )
    assert numbers(found.node) == {"x.com/slots": 20}


@pytest.mark.parametrize(("source", "amount"), [(MLU, 0), (CORES, 9), (NPU, 9), (MLU, -1)])
def test_what_makes_no_card_is_a_reason(source: str, amount: int) -> None:
    found = derived(node(allocatable={source: str(amount)}))
    assert numbers(found.node) == {}
    assert found.reasons[0].endswith(f": left out: allocatable {source} is {amount}")


@pytest.mark.parametrize("source", [MLU, CORES, NPU])
def test_more_cards_than_a_node_can_have_are_a_reason(source: str) -> None:
    found = derived(node(allocatable={source: str(10**15)}))
    assert numbers(found.node) == {}
    assert found.reasons[0].endswith("is more than 128 cards have")


def test_our_own_resources_say_nothing_about_cards() -> None:
    found = derived(node(allocatable={CORES: "200"}), Before(offered={CORES}))
    assert numbers(found.node) == {}


@pytest.mark.parametrize(
    ("sample", "register", "source"), [("Iluvatar", ILUVATAR, CORES), ("Ascend", ASCEND, NPU)]
)
def test_where_there_is_an_annotation_only_that_counts(
    sample: str, register: str, source: str
) -> None:
    _, text, counts = SAMPLES[sample]
    allocatable = {source: "200"}
    assert numbers(derived(node({register: text}, allocatable=allocatable)).node) == counts
    assert numbers(derived(node({register: "?"}, allocatable=allocatable)).node) == {}


def test_memory_comes_in_the_units_of_the_user() -> None:
    document = node(allocatable={NPU: "80"})
    found = derived(document, ascend_memory_factor=4)
    assert numbers(found.node) == {"huawei.com/Ascend910-memory": 8 * 65536 // 4}
    (over,) = derived(document).reasons
    assert "the smallest memory factor that fits is 2 (--ascend-memory-factor" in over
    assert sum(numbers(derived(document, ascend_memory_factor="auto").node).values()) < 300_000
