"""Small fleets and pods for tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hami_mock.settings.pools import Pool
from hami_mock.whatif.cluster_model import load_fleet
from hami_mock.whatif.demand import CPU, RAM, Arrival, Container, PodKind, Workload
from hami_mock.whatif.outcome import Outcome
from hami_mock.whatif.placer import place
from hami_mock.whatif.rules import Rules

GIB = 2**30
COUNT, MEMORY, CORES, PERCENT = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpucores",
    "nvidia.com/gpumem-percentage",
)


def fleet(folder: Path, *pools: str, vendors: str = "nvidia", policy: str = "binpack") -> Any:
    """The pools of a file with these lines, such as "name: a, nodes: 2"."""
    path = folder / "fleet.yaml"
    lines = "\n".join(f"- {{{pool}}}" for pool in pools)
    path.write_text(f"vendors: [{vendors}]\npools:\n{lines}\n")
    return load_fleet(str(path), Rules.of(policy))


def card(cards: int = 1, **more: int) -> Container:
    """A container that asks for cards; memory and cores are those of each."""
    named = {"memory": MEMORY, "cores": CORES, "percent": PERCENT}
    return Container({COUNT: cards, **{named[key]: amount for key, amount in more.items()}})


def pod(*containers: Container, **more: Any) -> PodKind:
    return PodKind(containers or (card(),), **more)


def node_share(cpu: int = 0, gib: int = 0, **asks: int) -> Container:
    return Container({CPU: cpu, RAM: gib * GIB, **asks})


def arrivals(*kinds: PodKind) -> Workload:
    return Workload(tuple(Arrival(f"p{n}", "test", kind) for n, kind in enumerate(kinds)))


def placed(
    pools: tuple[Pool, ...], *kinds: PodKind, policy: str = "binpack", scheduler: str = "hami"
) -> Outcome:
    return place(pools, arrivals(*kinds), Rules.of(policy, scheduler))


def where(outcome: Outcome) -> dict[str, str]:
    """The node of each pod, and of its cards their numbers: "a-0/0,1"."""
    return {
        each.pod: each.node + "".join(f"/{share.card}" for share in each.cards)
        for each in outcome.placements
    }


def reasons(outcome: Outcome) -> list[Mapping[str, int]]:
    return [refusal.reasons for refusal in outcome.refusals]
