"""The labels of AMD's node labeller.

It counts the cards of each value of a property: beta.amd.com/gpu.vram.192G=8. Where all cards have
the same, the value stands there too. Firmware and driver versions are left out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from hami_mock.vendors.catalog import Model
from hami_mock.vendors.label_text import LONGEST, label_value
from hami_mock.vendors.labelling import CardsHere, LabelledCard, LabelSet

_DEVICE_IDS = {"MI210": "740f", "MI250X": "7408", "MI300X": "74a1", "MI325X": "74a5"}
_SIMDS_OF_A_UNIT = 4
# So much of the 63 characters of a label's name is left for a value.
_LONGEST_IN_NAME = LONGEST - len("gpu.product-name.")


def labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    if wanted is not LabelSet.VENDORS:
        return {}
    counts: dict[str, Counter[str]] = {}
    for card in here.cards:
        for name, value in _properties(card):
            counts.setdefault(name, Counter())[value] += 1
    return dict(
        label
        for name, values in counts.items()
        if "" not in values
        for label in _pair(name, values)
    )


def _properties(card: LabelledCard) -> Iterator[tuple[str, str]]:
    model: Model = card.model
    if model.name in _DEVICE_IDS:
        yield "device-id", _DEVICE_IDS[model.name]
        # All of them are of the Arctic Islands to the driver.
        yield "family", "AI"
    name = model.product.translate(str.maketrans(" ", "_", "()"))
    yield "product-name", label_value(name, longest=_LONGEST_IN_NAME)
    yield "vram", f"{round(card.memory / 1024)}G"
    yield "cu-count", str(model.cores)
    yield "simd-count", str(model.cores * _SIMDS_OF_A_UNIT)


def _pair(name: str, values: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    is_one = len(values) == 1
    for value, count in values.items():
        yield f"beta.amd.com/gpu.{name}.{value}", str(count)
        if is_one:
            yield f"beta.amd.com/gpu.{name}", value
            yield f"amd.com/gpu.{name}", value
        else:
            yield f"amd.com/gpu.{name}.{value}", str(count)
