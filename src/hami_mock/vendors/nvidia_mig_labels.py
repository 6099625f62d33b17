"""The labels of MIG instances, in the form of GFD's strategy `mixed`.

HAMi makes instances when pods come. What a node can be told by is what it could have: `count` is
how many instances of a profile there would be if all cards were cut into nothing else.

Multiprocessors and engines are those that NVIDIA's tool lists. It isn't known what it lists for
H20's 2g and 7g, and for B200's 3g and 7g: those are estimates.
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
    encoder: int = 0


_ByCompute = dict[int, _Parts]
"""By an instance's slices of compute."""


def _hopper(*multiprocessors: int) -> _ByCompute:
    engines = ((1, 1, 1, 0), (2, 2, 2, 0), (3, 3, 3, 0), (8, 7, 7, 1))
    rows = zip((1, 2, 3, 7), multiprocessors, engines, strict=True)
    return {slices: _Parts(count, *parts) for slices, count, parts in rows}


# By the card's compute capability and multiprocessors.
_PARTS: dict[tuple[str, int], _ByCompute] = {
    ("8.0", 56): {
        1: _Parts(14, 1, 1, 0, 0),
        2: _Parts(28, 2, 2, 0, 0),
        4: _Parts(56, 4, 4, 1, 1),
    },
    ("8.0", 108): {
        1: _Parts(14, 1, 0, 0, 0),
        2: _Parts(28, 2, 1, 0, 0),
        3: _Parts(42, 3, 2, 0, 0),
        7: _Parts(98, 7, 5, 1, 1),
    },
    ("9.0", 78): _hopper(8, 16, 32, 78),
    ("9.0", 114): _hopper(14, 30, 46, 114),
    ("9.0", 132): _hopper(16, 32, 60, 132),
    ("10.0", 148): {
        1: _Parts(18, 2, 1, 1, 0),
        2: _Parts(36, 4, 2, 2, 0),
        3: _Parts(54, 6, 3, 3, 0),
        7: _Parts(148, 16, 7, 7, 1),
    },
    ("12.0", 188): {
        1: _Parts(46, 1, 1, 1, 0, encoder=1),
        2: _Parts(94, 2, 2, 2, 0, encoder=2),
        4: _Parts(188, 4, 4, 4, 1, encoder=4),
    },
}
# HAMi's chart has a name of its own for the whole of an A100 with 80 GB.
_NVIDIAS_NAMES = {"7g.79gb": "7g.80gb"}


def instance_labels(cards: Sequence[LabelledCard]) -> dict[str, str]:
    """Return labels without their domain for each profile that some card can be cut into."""
    counts: Counter[str] = Counter()
    found: dict[str, str] = {}
    for card in sorted(cards, key=lambda card: card.model.product):
        for profile in nvidia_mig.profiles(card.model):
            name = _NVIDIAS_NAMES.get(profile.name, profile.name)
            counts[name] += len(profile.placements)
            parts = _parts(card.model, profile.slices)
            told = {
                "product": label_value(card.model.product, "MIG", name),
                "replicas": 1,
                "sharing-strategy": "none",
                "memory": profile.memory,
                "multiprocessors": parts.multiprocessors,
                "slices.gi": profile.slices,
                "slices.ci": profile.slices,
                "engines.copy": parts.copy,
                "engines.decoder": parts.decoder,
                "engines.encoder": parts.encoder,
                "engines.jpeg": parts.jpeg,
                "engines.ofa": parts.ofa,
            }
            for key, value in told.items():
                found.setdefault(f"mig-{name}.{key}", str(value))
    return found | {f"mig-{name}.count": str(count) for name, count in counts.items()}


def _parts(model: Model, slices: int) -> _Parts:
    multiprocessors = model.cores // (64 if model.compute == "8.0" else 128)
    return _PARTS[model.compute, multiprocessors][slices]
