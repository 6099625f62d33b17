"""The labels of MIG instances, in the form of GFD's strategy `mixed`.

HAMi makes instances when pods come. What a node can be told by is what it could have: `count` is
how many instances of a profile there would be if all cards were cut into nothing else.

Multiprocessors and engines are those that NVIDIA's tool lists for A30, A100, H100 and H200; of
others the engines are taken from H100, and the multiprocessors are a share.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hami_mock.vendors import nvidia_mig
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.label_text import label_value
from hami_mock.vendors.labelling import LabelledCard


class _Parts(NamedTuple):
    multiprocessors: int
    copy: int
    decoder: int
    jpeg: int
    ofa: int


# By the card's compute capability and multiprocessors, then the instance's slices of compute.
_A100 = {
    1: _Parts(14, 1, 0, 0, 0),
    2: _Parts(28, 2, 1, 0, 0),
    3: _Parts(42, 3, 2, 0, 0),
    7: _Parts(98, 7, 5, 1, 1),
}
_A30 = {1: _Parts(14, 1, 0, 0, 0), 2: _Parts(28, 2, 2, 0, 0), 4: _Parts(56, 4, 4, 1, 1)}
_H100 = {
    1: _Parts(16, 1, 1, 1, 0),
    2: _Parts(32, 2, 2, 2, 0),
    3: _Parts(60, 3, 3, 3, 0),
    4: _Parts(64, 4, 4, 4, 0),
    7: _Parts(132, 8, 7, 7, 1),
}
_KNOWN = {("8.0", 108): _A100, ("8.0", 56): _A30, ("9.0", 132): _H100}


def instance_labels(cards: Sequence[LabelledCard]) -> dict[str, str]:
    """Return labels without their domain for each profile that some card can be cut into."""
    counts: Counter[str] = Counter()
    found: dict[str, str] = {}
    for card in sorted(cards, key=lambda card: card.model.product):
        profiles = nvidia_mig.profiles(card.model)
        for profile in profiles:
            counts[profile.name] += len(profile.placements)
            parts = _parts(card.model, profile.slices, profiles[-1].slices)
            told = {
                "product": label_value(card.model.product, "MIG", profile.name),
                "replicas": 1,
                "sharing-strategy": "none",
                "memory": profile.memory,
                "multiprocessors": parts.multiprocessors,
                "slices.gi": profile.slices,
                "slices.ci": profile.slices,
                "engines.copy": parts.copy,
                "engines.decoder": parts.decoder,
                "engines.encoder": 0,
                "engines.jpeg": parts.jpeg,
                "engines.ofa": parts.ofa,
            }
            for name, value in told.items():
                found.setdefault(f"mig-{profile.name}.{name}", str(value))
    return found | {f"mig-{name}.count": str(count) for name, count in counts.items()}


def _parts(model: Model, slices: int, most: int) -> _Parts:
    multiprocessors = model.cores // (64 if model.compute == "8.0" else 128)
    if known := _KNOWN.get((model.compute, multiprocessors)):
        return known[slices]
    return _H100[slices]._replace(multiprocessors=multiprocessors * slices // most)
