"""Cards as labels see them."""

from dataclasses import dataclass

from hami_mock.vendors import catalog
from hami_mock.vendors.catalog import Model


@dataclass(frozen=True)
class Labelled:
    model: Model
    memory: int


def cards_of(maker: str, *names: str) -> list[Labelled]:
    models = (catalog.models()[maker][name] for name in names)
    return [Labelled(model, model.memory) for model in models]
