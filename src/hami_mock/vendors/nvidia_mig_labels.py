"""The labels of MIG instances, in the form of GFD's strategy `mixed`.

HAMi makes instances when pods come. What a node can be told by is what it could have: `count` is
how many instances of a profile there would be if all cards were cut into nothing else.
"""

from collections import Counter
from collections.abc import Sequence

from hami_mock.vendors import nvidia_mig
from hami_mock.vendors.label_text import label_value
from hami_mock.vendors.labelling import LabelledCard


def instance_labels(cards: Sequence[LabelledCard]) -> dict[str, str]:
    """Return labels without their domain for each profile that some card can be cut into."""
    counts: Counter[str] = Counter()
    found: dict[str, str] = {}
    for card in sorted(cards, key=lambda card: card.model.product):
        for profile in nvidia_mig.listed(card.model).values():
            counts[profile.name] += len(profile.starts)
            told = {
                "product": label_value(card.model.product, "MIG", profile.name),
                "replicas": 1,
                "sharing-strategy": "none",
                "memory": profile.memory,
                "multiprocessors": profile.multiprocessors,
                "slices.gi": profile.slices,
                "slices.ci": profile.slices,
                "engines.copy": profile.copy,
                "engines.decoder": profile.decoders,
                "engines.encoder": profile.encoders,
                "engines.jpeg": profile.jpegs,
                "engines.ofa": profile.ofas,
            }
            for key, value in told.items():
                found.setdefault(f"mig-{profile.name}.{key}", str(value))
    return found | {f"mig-{name}.count": str(count) for name, count in counts.items()}
