"""Which labels of a node are ours, and what is to be written of them. Pure.

An annotation names those that we wrote, so that an agent that is started again knows them. A label
that somebody else wrote stays as it is.
"""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass

from hami_mock.vendors.label_text import may_be_ours

ANNOTATION = "hami-mock.io/labels"
_MOST_LABELS = 1000


@dataclass(frozen=True)
class Difference:
    """What a node lacks.

    - labels: to set, or to remove where they are None
    - note: the annotation to go with them; None: it isn't needed
    - is_noted: whether the annotation says so already
    - ours: the labels that are ours after this
    - foreign: labels that we would write, but for somebody else's
    """

    labels: Mapping[str, str | None]
    note: str | None
    is_noted: bool
    ours: Set[str]
    foreign: Set[str]

    @property
    def is_none(self) -> bool:
        return self.is_noted and not self.labels


def noted(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return the labels that the annotation names, without those that none of ours could be."""
    names = annotations.get(ANNOTATION, "").split(",", _MOST_LABELS)[:_MOST_LABELS]
    return frozenset(filter(may_be_ours, names))


def difference(
    wanted: Mapping[str, str],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    ours: Set[str],
    stamps: Collection[str] = (),
) -> Difference:
    """Compare the labels that a node should have with those that it shows.

    Those of `stamps` say when they were written: what stands there is as good.
    """
    kept = {key: labels[key] for key in stamps if key in ours and labels.get(key, "").isdecimal()}
    wanted = {key: kept.get(key, value) for key, value in wanted.items()}
    foreign = {
        key for key, value in wanted.items() if key not in ours and labels.get(key, value) != value
    }
    missing = {
        key: value
        for key, value in wanted.items()
        if key not in foreign and labels.get(key) != value
    }
    gone = dict.fromkeys(key for key in sorted(ours - wanted.keys()) if key in labels)
    ours_now = (ours & wanted.keys()) | missing.keys()
    note = ",".join(sorted(ours_now)) or None
    return Difference(
        {**missing, **gone}, note, annotations.get(ANNOTATION) == note, ours_now, foreign
    )
