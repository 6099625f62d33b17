"""What a real scheduler decided, as a part of the report. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from hami_mock.whatif.rules import Scheduler
from hami_mock.whatif.verdict import Verdict

_MOST_TOLD = 10


class _Words(NamedTuple):
    """What is said of a scheduler: who it is, how it chooses, and that it was right."""

    name: str
    chance: str
    right: str


_WORDS = {
    Scheduler.KUBE: _Words(
        "The real kube-scheduler, which sees no cards,",
        "among equal nodes it takes the first, kube-scheduler any of them",
        "By these rules each of the scheduler's decisions is right.",
    ),
    Scheduler.HAMI: _Words(
        "HAMi's own scheduler",
        "among equal nodes and cards it takes the first, HAMi any of them",
        "By these rules there is room for each pod that it places, and for none that it refuses.",
    ),
}


def told(
    verdict: Verdict, *, had_ends: bool = False, scheduler: Scheduler = Scheduler.KUBE
) -> dict[str, Any]:
    """Return a verdict as plain data, and as lines for people.

    `had_ends`: elsewhere in the report pods end, which they don't do before a judge.
    """
    return {
        "scheduler": scheduler,
        "pods": verdict.pods,
        "placed": verdict.placed,
        "chance": verdict.chance,
        "alone": verdict.alone,
        "had_ends": had_ends,
        "differences": [each._asdict() for each in verdict.unlike],
        "lines": [*_terms(had_ends), *_lines(verdict, _WORDS[scheduler])],
    }


def _terms(had_ends: bool) -> Iterator[str]:
    if had_ends:
        yield (
            "For the judge, pods never end, so fewer may fit than above: with --stay they never "
            "end in the whole report."
        )


def _lines(verdict: Verdict, words: _Words) -> Iterator[str]:
    by_chance = (
        f", {verdict.chance:,} of them by chance among equal nodes" if verdict.chance else ""
    )
    yield f"{words.name} places {verdict.placed:,} of {verdict.pods:,} pods{by_chance}."
    chance = f": {words.chance}" if verdict.alone != verdict.placed else ""
    yield f"By the same rules and on the same terms, the placer places {verdict.alone:,}{chance}."
    if not verdict.unlike:
        yield words.right
    for each in verdict.unlike[:_MOST_TOLD]:
        yield f"{each.pod}: it says {each.real}, the placer {each.ours}: {each.why}."
    if (more := len(verdict.unlike) - _MOST_TOLD) > 0:
        yield f"{more:,} more pods differ; the JSON has all of them."
