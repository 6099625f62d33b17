"""Card models by name, from catalog.yaml."""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml


@dataclass(frozen=True)
class Model:
    """What is true of every card of one model. Units are those of catalog.yaml."""

    name: str
    product: str
    memory: int
    cores: int
    family: str
    power: int
    compute: str = ""


@cache
def models() -> dict[str, dict[str, Model]]:
    """Return the models of each vendor: vendor key, then model name, in the catalog's order."""
    # The C loader is in every wheel of PyYAML; the pure one takes 20 times as long at each start.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = resources.files(__package__).joinpath("catalog.yaml").read_text(encoding="utf-8")
    catalog = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe loaders
    return {
        vendor: {name: Model(name=name, **row) for name, row in rows.items()}
        for vendor, rows in catalog.items()
    }


def find(vendor: str, name: str) -> Model | None:
    """Return a vendor's model, in whatever case its name is written."""
    for model in models()[vendor].values():
        if model.name.lower() == name.lower():
            return model
    return None


def similar(vendor: str, name: str) -> list[str]:
    """Return the names of the vendor's models that look most like the name."""
    import difflib  # only after a mistake

    lower = {known.lower(): known for known in models()[vendor]}
    close = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.4)
    containing = [known for known in lower if name.lower() in known]
    return [lower[known] for known in dict.fromkeys(containing[:3] + close)]
