"""Outcomes written by hand, small enough to know every number of."""

from collections.abc import Mapping, Sequence

from hami_mock.settings.pools import Pool
from hami_mock.whatif.demand import Arrival, Container, PodKind, Workload
from hami_mock.whatif.fragmentation import Wish
from hami_mock.whatif.outcome import (
    Amounts,
    CardShare,
    CardUse,
    Moment,
    Outcome,
    Placement,
    PoolUse,
    Refusal,
    Stranded,
)
from hami_mock.whatif.purchase import Point, Purchase
from hami_mock.whatif.report import Answers, Asked
from hami_mock.whatif.requests import Request
from tests.makers import BY_WORD

GPU = BY_WORD["NVIDIA"]
CARD = CardUse(
    "a100", "a100-0", "NVIDIA", "NVIDIA A100-SXM4-80GB", "hami-core", 0, 81920, 0, 100, 0, 10, 0
)
SMALL, LARGE = Request(GPU, 1, memory=20480, cores=25), Request(GPU, 1, memory=61440, cores=50)
WISHES = (Wish(SMALL, pods=3), Wish(LARGE, pods=1))


def used(memory: int = 0, cores: int = 0, slots: int = 1, card: CardUse = CARD) -> CardUse:
    return card._replace(memory_used=memory, cores_used=cores, slots_used=slots)


def refusal(number: int, reasons: Mapping[str, int], name: str = "") -> Refusal:
    pod = name or f"train-{number}"
    return Refusal(pod, "job/train", number, "1 nvidia.com/gpu, 61440 nvidia.com/gpumem", reasons)


REFUSALS = (
    refusal(4, {"CardInsufficientMemory": 1, "CardTypeMismatch": 3}),
    refusal(5, {"Insufficient cpu": 1}),
    refusal(6, {"CardInsufficientMemory": 1}),
)
PLACEMENTS = tuple(
    Placement(
        f"web-{n}",
        "deployment/web",
        n,
        "a100",
        "a100-0",
        (CardShare("NVIDIA", 0, 20480, 25),),
        after=n + 1,
    )
    for n in range(4)
)
THERE = Amounts(20, 163840, 200, 0, 64000, 2**39, 110)
TAKEN = Amounts(4, 81920, 100, 0, 16000, 2**37, 4)
STRANDED = Stranded(memory_without_node=81920, cards_without_node=1)
POOL = PoolUse("a100", 1, 1, 2, 1, THERE, TAKEN, STRANDED)
EMPTY = PoolUse("cpu", 2, 0, 0, 0, Amounts(cpu=8000, ram=2**34, pods=220), Amounts(), Stranded())


def moments(count: int = 7) -> tuple[Moment, ...]:
    """Pods that ask for a quarter of a card each, of which four are placed."""
    return tuple(
        Moment(
            0.0,
            n,
            min(n, 4),
            max(0, n - 4),
            Amounts(n, 20480 * n, 25 * n, 0, 4000 * n, 2**35 * n, n),
            Amounts(*(min(n, 4) * part // 4 for part in TAKEN)),
            STRANDED if n >= 4 else Stranded(),
        )
        for n in range(1, count + 1)
    )


def outcome(
    placements: Sequence[Placement] = PLACEMENTS,
    refusals: Sequence[Refusal] = REFUSALS,
    policy: str = "binpack",
) -> Outcome:
    return Outcome(
        policy,
        "hami",
        tuple(placements),
        tuple(refusals),
        (POOL, EMPTY),
        (used(81920, 100, 4), CARD._replace(card=1)),
        moments(),
        0.25,
    )


WORKLOAD = Workload(
    tuple(Arrival(f"pod-{n}", "job/train", PodKind((Container({"cpu": 1000}),))) for n in range(7))
)
ASKED = Asked("fleet.yaml", ("web.yaml", "train.yaml"), WORKLOAD, WISHES, 7)
PURCHASE = Purchase("a100", 7, (Point(0, 4), Point(1, 6), Point(2, 7)), Point(2, 7))
USELESS_PURCHASE = Purchase("cpu", 7, (Point(0, 4), Point(1, 4)), Point(0, 4))
ANSWERS = Answers((outcome(),), (PURCHASE, USELESS_PURCHASE))


def pools(**nodes: int) -> tuple[Pool, ...]:
    return tuple(Pool(name, count) for name, count in nodes.items())
