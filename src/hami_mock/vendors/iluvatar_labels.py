"""The labels of Iluvatar's ix-feature-discovery. Of several models, that with most cards counts."""

from collections import Counter
from collections.abc import Mapping

from hami_mock.vendors.iluvatar_exporter import EXPORTER
from hami_mock.vendors.label_text import label_value
from hami_mock.vendors.labelling import CardsHere, LabelSet

_MACHINE = "hami-mock"
_CUDA = "10.2"


def labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    if wanted is not LabelSet.VENDORS:
        return {}
    counts = Counter(card.model.name for card in here.cards)
    name = min(counts, key=lambda each: (-counts[each], each))
    memory = next(card.memory for card in here.cards if card.model.name == name)
    major, minor, revision = EXPORTER.driver.split(".")
    cuda_major, cuda_minor = _CUDA.split(".")
    told = {
        "gpu.present": "true",
        "gpu.count": counts[name],
        "gpu.product": label_value(name),
        "gpu.memory": memory,
        "gpu.machine": _MACHINE,
        "ix.driver-version.full": EXPORTER.driver,
        "ix.driver-version.major": major,
        "ix.driver-version.minor": minor,
        "ix.driver-version.revision": revision,
        "cuda.runtime-version.full": _CUDA,
        "cuda.runtime-version.major": cuda_major,
        "cuda.runtime-version.minor": cuda_minor,
        "ix.timestamp": here.now,
    }
    return {f"iluvatar.com/{key}": str(value) for key, value in told.items()}
