"""What a real scheduler decided, as a part of the report. Pure."""

from collections.abc import Iterator
from typing import Any

from hami_mock.whatif.verdict import Verdict

_MOST_TOLD = 10


def told(verdict: Verdict, *, had_ends: bool = False) -> dict[str, Any]:
    """Return a verdict as plain data, and as lines for people.

    `had_ends`: elsewhere in the report pods end, which they don't do before the judge.
    """
    return {
        "scheduler": "kube",
        "pods": verdict.pods,
        "placed": verdict.placed,
        "chance": verdict.chance,
        "alone": verdict.alone,
        "had_ends": had_ends,
        "differences": [each._asdict() for each in verdict.unlike],
        "lines": [*_terms(had_ends), *_lines(verdict)],
    }


def _terms(had_ends: bool) -> Iterator[str]:
    if had_ends:
        yield (
            "Before the judge pods stay for ever, so fewer may fit than above: --stay lets all of "
            "the report do so."
        )


def _lines(verdict: Verdict) -> Iterator[str]:
    by_chance = (
        f", {verdict.chance:,} of them by chance among equal nodes" if verdict.chance else ""
    )
    yield (
        f"The real kube-scheduler, which sees no cards, places {verdict.placed:,} of "
        f"{verdict.pods:,} pods{by_chance}."
    )
    chance = (
        ": of equal nodes it takes the first, kube-scheduler any"
        if verdict.alone != verdict.placed
        else ""
    )
    yield f"By the same rules and on the same terms, the placer places {verdict.alone:,}{chance}."
    if not verdict.unlike:
        yield "By these rules each of the scheduler's decisions is right."
    for each in verdict.unlike[:_MOST_TOLD]:
        yield f"{each.pod}: it says {each.real}, the placer {each.ours}: {each.why}."
    if (more := len(verdict.unlike) - _MOST_TOLD) > 0:
        yield f"{more:,} more pods differ; the JSON has all of them."
