import json

import pytest

from hami_mock.hami.assignment import Assignment
from hami_mock.hami.kinds import MIG_ALLOCATIONS
from hami_mock.hami.mig import MigPlacement
from hami_mock.node.cards import CardGroup, make_cards
from hami_mock.vendors.catalog import models
from hami_mock.vendors.handout import Container
from hami_mock.vendors.nvidia_mig import hand_out, made, profiles, rule_for
from hami_mock.vendors.scheduling import AllowedProfiles
from tests.makers import BY_WORD, NVIDIA


def test_an_a100_has_what_its_driver_says() -> None:
    found = profiles(models()["nvidia"]["A100-SXM4-40GB"])
    assert [(p.name, p.memory, p.cores, p.slices) for p in found] == [
        ("1g.5gb", 4864, 15, 1),
        ("2g.10gb", 9856, 29, 2),
        ("3g.20gb", 19968, 43, 3),
        ("7g.40gb", 40192, 100, 7),
    ]
    assert found[2].placements == (MigPlacement(0, 4), MigPlacement(4, 4))
    assert max(len(p.placements) for p in found) == 7


def test_a_card_of_four_slices() -> None:
    found = profiles(models()["nvidia"]["A30"])
    assert [(p.name, p.cores) for p in found] == [("1g.6gb", 25), ("2g.12gb", 50), ("4g.24gb", 100)]
    assert max(len(p.placements) for p in found) == 4


def test_cores_are_the_share_of_the_multiprocessors() -> None:
    found = profiles(models()["nvidia"]["H100-SXM5-80GB"])
    # 16, 32, 60 and 132 of 132.
    assert [p.cores for p in found] == [13, 25, 46, 100]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("A100-SXM4-80GB", ["1g.10gb", "2g.20gb", "3g.40gb", "7g.79gb"]),
        # No model of the chart is in this one's name, so it has NVIDIA's own names.
        ("A100-PCIE-80GB", ["1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"]),
        # The rule of the H20 comes before that of the H200, whose name has it in it.
        ("H200-NVL-141GB", ["1g.12gb", "2g.24gb", "3g.48gb", "7g.96gb"]),
        ("RTX-PRO-6000", ["1g.24gb", "2g.48gb", "4g.96gb"]),
    ],
)
def test_names_are_those_of_hamis_chart_where_it_has_a_rule(model: str, names: list[str]) -> None:
    assert [p.name for p in profiles(models()["nvidia"][model])] == names


RULES = (
    AllowedProfiles(("H100 80GB",), ("3g.40gb", "1g.99gb", "5g.1gb", "8g.1gb")),
    AllowedProfiles(("H100",), ("7g.80gb",)),
)


def test_the_first_rule_that_fits_says_what_is_allowed_and_how_it_is_called() -> None:
    found = profiles(models()["nvidia"]["H100-SXM5-80GB"], RULES)
    # Only what is before the dot counts; there is no 5g, and this card has no 8g.
    assert [(p.name, p.memory, p.slices) for p in found] == [
        ("3g.40gb", 40448, 3),
        ("1g.99gb", 9984, 1),
    ]
    assert [p.name for p in profiles(models()["nvidia"]["H100-PCIE-80GB"], RULES)] == ["7g.80gb"]
    assert profiles(models()["nvidia"]["A30"], RULES) == ()
    assert profiles(models()["nvidia"]["A30"], ()) == ()
    assert profiles(models()["nvidia"]["T4"], (AllowedProfiles(("T4",), ("1g.5gb",)),)) == ()


@pytest.mark.parametrize(
    ("card_type", "is_there"),
    [("NVIDIA A30", True), ("NVIDIA H100 80GB HBM3", False), ("NVIDIA A100 80GB PCIe", False),
     ("NVIDIA H200", True), ("NVIDIA GB200", True), ("NVIDIA B300", False)],
)  # fmt: skip
def test_some_models_have_no_rule_in_hamis_chart(card_type: str, *, is_there: bool) -> None:
    assert (rule_for(card_type, None) is not None) is is_there


def test_memory_of_an_rtx_pro_6000_is_placed_in_twelfths() -> None:
    found = profiles(models()["nvidia"]["RTX-PRO-6000"])
    assert [p.placements for p in found] == [
        tuple(MigPlacement(start, 3) for start in (0, 3, 6, 9)),
        (MigPlacement(0, 6), MigPlacement(6, 6)),
        (MigPlacement(0, 12),),
    ]


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("A30", (5952, 11968, 24000)),
        ("A100-SXM4-80GB", (9728, 19968, 40192, 80896)),
        ("H100-SXM5-80GB", (9984, 20096, 40448, 81152)),
        ("H100-NVL-94GB", (11008, 22144, 47488, 95360)),
        ("GH200", (11264, 23552, 47616, 95232)),
        ("H200-SXM-141GB", (16384, 33024, 71168, 143104)),
        ("RTX-PRO-6000", (24192, 48512, 97408)),
        # What isn't known is a share of the card, in steps of 64 MiB.
        ("H20", (12032, 24192, 48512, 97856)),
        ("B200", (20992, 45312, 91648, 183296)),
    ],
)
def test_an_instance_has_the_memory_that_the_driver_gives_it(
    name: str, memory: tuple[int, ...]
) -> None:
    assert tuple(p.memory for p in profiles(models()["nvidia"][name])) == memory


@pytest.mark.parametrize("name", ["T4", "L40S", "RTX-4090", "V100-SXM2-32GB"])
def test_most_models_can_not_be_cut(name: str) -> None:
    assert profiles(models()["nvidia"][name]) == ()


def test_no_profile_is_larger_than_its_card_and_none_leaves_it() -> None:
    for model in models()["nvidia"].values():
        found = profiles(model)
        whole = max((p.placements[0].size for p in found), default=0)
        for profile in found:
            assert 0 < profile.memory <= model.memory
            assert all(place.start + place.size <= whole for place in profile.placements)
        assert [p.memory for p in found] == sorted(p.memory for p in found)


@pytest.mark.parametrize(
    ("model", "places", "expected"),
    [
        # As the driver numbers them.
        ("H100-NVL-94GB", [(0, 2), (2, 2), (4, 2)], [3, 4, 5]),
        ("H100-NVL-94GB", [(6, 1)], [13]),
        ("H100-NVL-94GB", [(0, 8)], [0]),
        ("A30", [(0, 1), (1, 1)], [3, 4]),
        ("A30", [(2, 2)], [2]),
        ("RTX-PRO-6000", [(0, 3), (3, 3), (9, 3)], [3, 4, 6]),
        # Nothing can be made of these, but the numbers differ.
        ("T4", [(4, 1)], [5]),
        ("A30", [(3, 0)], [4]),
    ],
)
def test_instances_are_numbered_by_their_places(
    model: str, places: list[tuple[int, int]], expected: list[int]
) -> None:
    found = models()["nvidia"][model]
    (card,) = make_cards("n", NVIDIA, [CardGroup(found, found.memory, (None,))])
    rows = [
        {"gpuUUID": card.uuid, "profile": "1g.1gb", "placement": {"start": start, "size": size}}
        for start, size in places
    ]
    devices = Assignment.parse(f"{card.uuid},NVIDIA,1,1:" * len(rows) + ";").containers[0]
    container = Container(
        BY_WORD["NVIDIA"],
        {MIG_ALLOCATIONS: json.dumps(rows)},
        0,
        devices,
        (),
        "x",
        mode="mig",
        cards=(card,) * len(rows),
    )
    given = hand_out(container)
    made_now = made(given.annotations[MIG_ALLOCATIONS])
    assert [instance.gpu_instance for instance in made_now] == expected
