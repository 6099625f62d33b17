from dataclasses import replace

import pytest

from hami_mock.doctor import refusal
from hami_mock.doctor.examine import examine_pod
from hami_mock.doctor.finding import Finding
from tests.unit.doctor.patients import assigned, card, case, node, pod, pod_case, told

REFUSED = "0/1 nodes are available: 1 2/2 {}. preemption: 0/1 nodes are available."


def refused(word: str) -> dict[str, object]:
    message = REFUSED.format(word)
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return {"conditions": [condition]}


def found(word: str, **limits: str) -> list[Finding]:
    asks = {f"nvidia.com/{name}": value for name, value in limits.items()}
    holder = pod(
        name="holder",
        nodeName="n1",
        annotations=assigned("GPU-1,NVIDIA,32034,70:;GPU-2,NVIDIA,30000,100:;"),
    )
    waiting = pod(asks, status=refused(word))
    return list(refusal.hami_words(pod_case(waiting, node(), [holder])))


def test_memory_with_what_each_card_has_left() -> None:
    (finding,) = found("CardInsufficientMemory", gpu="1", gpumem="4000")
    assert told([finding]) == [("error", "HAMi: CardInsufficientMemory")]
    assert finding.what == (
        "no card has that much memory left (2 of 2 cards): container c0 asks for 1 nvidia.com/gpu "
        "with 4000 MiB. On node n1: GPU-1 734 of 32768 MiB left; n1: GPU-2 2768 of 32768 MiB left"
    )


@pytest.mark.parametrize(
    ("word", "limits", "asks", "left"),
    [
        ("CardInsufficientMemory", {"gpumem-percentage": "50"}, "50 % of the memory", "734 of"),
        ("CardInsufficientMemory", {}, "100 % of the memory", "2768 of 32768 MiB left"),
        ("CardInsufficientCore", {"gpucores": "40"}, "40 cores", "GPU-1 30 of 100 cores left"),
        ("CardComputeUnitsExhausted", {}, "0 cores", "GPU-2 0 of 100 cores left"),
        ("CardTimeSlicingExhausted", {}, "1 nvidia.com/gpu", "GPU-1 9 of 10 slots left"),
        ("ExclusiveDeviceAllocateConflict", {}, "1 nvidia.com/gpu", "GPU-2 9 of 10 slots left"),
        ("CardTypeMismatch", {}, "1 nvidia.com/gpu", "is a NVIDIA-Tesla V100 in mode hami-core"),
        ("CardNotHealth", {}, "1 nvidia.com/gpu", "GPU-1 is healthy"),
    ],
)
def test_the_numbers_are_those_that_the_word_is_about(
    word: str, limits: dict[str, str], asks: str, left: str
) -> None:
    (finding,) = found(word, gpu="1", **limits)
    assert asks in finding.what
    assert left in finding.what


@pytest.mark.parametrize("word", refusal.WORDS)
def test_every_word_of_a_scheduler_has_a_meaning_and_advice(word: str) -> None:
    (finding,) = found(word, gpu="1")
    who = refusal.WORDS[word].get("who", "HAMi")
    assert finding.where == f"{who}: {word}"
    assert finding.advice


def test_several_words_are_several_findings() -> None:
    both = found("CardCordoned, 1/2 CardUuidMismatch", gpu="1")
    assert [finding.where for finding in both] == ["HAMi: CardCordoned", "HAMi: CardUuidMismatch"]


def test_other_reasons_and_pods_that_run_are_no_business_of_hamis() -> None:
    assert found("Insufficient cpu", gpu="1") == []
    running = pod(status={**refused("CardCordoned"), "phase": "Running"})
    assert list(refusal.hami_words(pod_case(running, node()))) == []


def test_a_pod_that_may_be_for_many_nodes_gets_the_numbers_of_all() -> None:
    other = node(card("GPU-9", devmem=1000))
    other["metadata"]["name"] = "n2"
    waiting = pod(status=refused("CardInsufficientMemory"))
    findings = examine_pod(replace(pod_case(waiting), elsewhere=[case(node()), case(other)]))
    (finding,) = (each for each in findings if each.where == "HAMi: CardInsufficientMemory")
    assert "n1: GPU-2 32768 of 32768 MiB left; n2: GPU-9 1000 of 1000 MiB left" in finding.what


def test_more_cards_than_anybody_would_read() -> None:
    many = node(*(card(f"GPU-{i}", index=i) for i in range(20)))
    waiting = pod(status=refused("CardInsufficientMemory"))
    (finding,) = refusal.hami_words(pod_case(waiting, many))
    assert finding.what.endswith("GPU-7 32768 of 32768 MiB left and 12 more")
