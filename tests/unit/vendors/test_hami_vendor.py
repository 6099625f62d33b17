from collections import Counter

import pytest

from hami_mock.hami.kinds import COLON, HAMI_LOCK, JSON, Encoding
from tests.makers import BY_WORD
from tests.unit.builders import cards

VENDORS = tuple(BY_WORD.values())


def test_all_of_hamis_vendors_are_there() -> None:
    makers = Counter(vendor.maker for vendor in VENDORS)
    assert makers.pop("ascend") == 7
    assert makers.pop("iluvatar") == 4
    assert {maker for maker, chips in makers.items() if chips == 2} == {
        "metax",
        "enflame",
        "kunlun",
    }
    assert len(makers) == 11


@pytest.mark.parametrize(
    "names",
    [
        [vendor.word for vendor in VENDORS],
        [vendor.resources.count for vendor in VENDORS],
        [vendor.node.register for vendor in VENDORS if vendor.node.register],
        [vendor.node.handshake for vendor in VENDORS if vendor.node.handshake],
        [vendor.pods.allocated for vendor in VENDORS],
    ],
)
def test_no_two_share_a_name(names: list[str]) -> None:
    assert len(set(names)) == len(names)


def test_an_annotation_with_cards_has_an_encoding() -> None:
    for vendor in VENDORS:
        assert bool(vendor.node.register) == (vendor.node.encoding is not None)


def test_who_has_a_handshake_answers_it_but_nvidia() -> None:
    silent = [v.word for v in VENDORS if v.node.handshake and v.node.report is None]
    assert silent == ["NVIDIA"]


def test_locks_are_of_those_whose_plugins_take_assignments() -> None:
    assert [v.word for v in VENDORS if v.lock not in (HAMI_LOCK, None)] == ["MLU"]
    for vendor in VENDORS:
        if vendor.node.encoding and vendor.word != "Enflame":
            assert vendor.lock is HAMI_LOCK
            assert vendor.pods.to_allocate


@pytest.mark.parametrize(
    ("word", "register", "encoding", "handshake", "to_allocate"),
    [
        (
            "NVIDIA",
            "hami.io/node-nvidia-register",
            JSON,
            "hami.io/node-handshake",
            "hami.io/vgpu-devices-to-allocate",
        ),
        (
            "BI-V150",
            "hami.io/node-BI-V150-register",
            COLON,
            "hami.io/node-handshake-BI-V150",
            "hami.io/BI-V150-devices-to-allocate",
        ),
        (
            "Ascend910B4-1",
            "hami.io/node-register-Ascend910B4-1",
            JSON,
            "hami.io/node-handshake-Ascend910B4-1",
            "hami.io/Ascend910B4-1-devices-to-allocate",
        ),
        ("MLU", "", None, "", "hami.io/cambricon-mlu-devices-to-allocate"),
        ("Mthreads", "", None, "", ""),
    ],
)
def test_annotations(
    word: str, register: str, encoding: Encoding | None, handshake: str, to_allocate: str
) -> None:
    vendor = BY_WORD[word]
    found = (vendor.node.register, vendor.node.encoding, vendor.node.handshake)
    assert found == (register, encoding, handshake)
    assert vendor.pods.to_allocate == to_allocate


def test_units_of_memory_and_cores() -> None:
    units = {
        word: BY_WORD[word].resources.memory_unit
        for word in ("NVIDIA", "MLU", "Mthreads", "MR-V100", "Metax-SGPU", "Ascend910A")
    }
    assert list(units.values()) == [1, 256, 512, 256, 1024, 1]
    assert BY_WORD["Mthreads"].resources.cores_per_card == 16


@pytest.mark.parametrize(
    ("word", "product", "expected"),
    [
        ("NVIDIA", "Tesla T4", "NVIDIA-Tesla T4"),
        ("NVIDIA", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("AMD", "amd-gpu", "amd-gpu"),
        ("DCU", "K100", "DCU-K100"),
        ("Ascend910B3", "910B3", "Ascend910B3"),
        ("MR-V100", "Iluvatar MR-V100", "MR-V100"),
    ],
)
def test_the_type_has_the_word_in_it(word: str, product: str, expected: str) -> None:
    assert BY_WORD[word].device_type(product) == expected


@pytest.mark.parametrize(
    ("word", "networks"),
    [
        ("Ascend910B3", [0, 0, 0, 0, 1, 1, 1, 1]),
        ("Ascend910C", [0] * 8),
    ],
)
def test_ascend_910_has_a_network(word: str, networks: list[int]) -> None:
    hami = BY_WORD[word]
    found = [hami.scheduling.custom(word, card) for card in cards(8, hami.vendor)]
    assert found == [{"NetworkID": network} for network in networks]


@pytest.mark.parametrize("word", ["Ascend310P", "NVIDIA", "DCU"])
def test_others_have_none(word: str) -> None:
    hami = BY_WORD[word]
    assert hami.scheduling.custom(word, cards(1, hami.vendor)[0]) == {}


def test_amds_cards_say_where_they_are_plugged_in() -> None:
    hami = BY_WORD["AMD"]
    (card,) = cards(1, hami.vendor)
    assert hami.scheduling.custom("AMD", card) == {"pciBDF": "000d:1b:00.0"}
