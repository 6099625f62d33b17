from hami_mock.node.sizing import Past
from hami_mock.node.unit_devices import UnitDevices
from hami_mock.sources.annotated.derive import Before
from tests.unit.sources.annotated.nodes import card, cards, derived, node, numbers
from tests.unit.sources.annotated.test_counted import MLU

MEMORY = "nvidia.com/gpumem"


def past_of(full: dict[str, str], held: set[str] | None) -> Before:
    found = derived(node(full)).node
    return Before(Past({r.name: r.devices for r in found.resources}, held))


def test_where_the_list_has_no_room_only_held_devices_stay_retired() -> None:
    old, new = (cards(card(f"GPU-{i}", devmem=200_000)) for i in range(2))
    past = past_of(old, held=None)
    unknown = derived(node(new), past)
    assert MEMORY not in numbers(unknown.node)
    assert unknown.reasons[0].startswith(f"{MEMORY}: left out: 400000 devices need a list of")
    units = past.past.devices[MEMORY]
    assert isinstance(units, UnitDevices)
    held = {"000", "001"}
    known = derived(node(new), Before(Past(past.past.devices, held)))
    (memory,) = (r for r in known.node.resources if r.name == MEMORY)
    assert sum(memory.devices.retired.values()) == 2


def test_slots_keep_their_cards() -> None:
    before = derived(node(allocatable={MLU: "2"})).node
    past = Past({r.name: r.devices for r in before.resources})
    (fewer,) = derived(node(allocatable={MLU: "1"}), Before(past)).node.resources
    assert fewer.count == 10
    assert sum(fewer.devices.retired.values()) == 10


def test_cores_beyond_all_bounds_are_left_out() -> None:
    found = derived(node(cards(card("GPU-1", devcore=10**9))))
    assert set(numbers(found.node)) == {MEMORY, "nvidia.com/gpumem-percentage"}
    assert found.reasons[0].startswith("nvidia.com/gpucores: left out: 1000000000 devices need")
    assert found.reasons[0].endswith("more than any plugin could register")
