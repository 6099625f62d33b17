"""What a real scheduler decided, as a part of the report. Pure."""

from collections.abc import Iterator
from typing import Any

from hami_mock.whatif.verdict import Verdict

_MOST_TOLD = 10


def told(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data, and as lines for people."""
    return {
        "scheduler": "kube",
        "pods": verdict.pods,
        "placed": verdict.placed,
        "chance": verdict.chance,
        "differences": [each._asdict() for each in verdict.unlike],
        "lines": list(_lines(verdict)),
    }


def _lines(verdict: Verdict) -> Iterator[str]:
    by_chance = (
        f", {verdict.chance:,} of them by chance among equal nodes" if verdict.chance else ""
    )
    yield (
        f"The real kube-scheduler, which sees no cards, places {verdict.placed:,} of "
        f"{verdict.pods:,} pods{by_chance}."
    )
    if not verdict.unlike:
        yield "By the placer's rules for it, each of these decisions is right."
    for each in verdict.unlike[:_MOST_TOLD]:
        yield f"{each.pod}: it says {each.real}, the placer {each.ours}: {each.why}."
    if (more := len(verdict.unlike) - _MOST_TOLD) > 0:
        yield f"{more:,} more pods differ; the JSON has all of them."
