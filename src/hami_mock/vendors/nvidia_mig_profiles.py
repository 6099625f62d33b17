"""MIG's profiles, from nvidia_mig.json: all GPU instances that cards of a model can be cut into.

They are as NVIDIA's tool lists them. Nobody has published what it lists for H20's 2g, 4g and 7g,
for 3g, 4g and 7g of B200 and GB200, and for B300 and GB300: of those, memory and multiprocessors
are shares of the card's, and engines are estimates.
"""

import json
import uuid
from functools import cache
from pathlib import Path

from hami_mock.vendors.catalog import Model
from hami_mock.vendors.instance_profile import Cutting, InstanceProfile

# Any fixed namespace will do; a change of it would rename every instance.
_NAMESPACE = uuid.UUID("0c4f6a55-1b7d-4f0e-8a58-6d3f3c1e9b20")


@cache
def _by_model() -> dict[str, tuple[InstanceProfile, ...]]:
    file = Path(__file__).with_name("nvidia_mig.json")
    found = {}
    for kind in json.loads(file.read_text(encoding="utf-8")):
        rows = kind["profiles"].items()
        profiles = tuple(
            InstanceProfile(name, **{**row, "starts": tuple(row["starts"])}) for name, row in rows
        )
        found.update(dict.fromkeys(kind["models"], profiles))
    return found


def instance_id(units: int, start: int, whole: int) -> int:
    """Return the ID of a GPU instance, as the driver gives it: by its place on the card.

    The whole card is 0, its halves are 1 and 2, its quarters 3 to 6, and so on.
    """
    return whole // units - 1 + start // units


def instance_uuid(card: str, profile: str, start: int, compute: int = 0) -> str:
    """Return the UUID of a device: always the same for the same place on the same card."""
    name = f"{card}/{profile}/{start}" + (f"/{compute}" if compute else "")
    return f"MIG-{uuid.uuid5(_NAMESPACE, name)}"


def instance_profiles(model: Model) -> tuple[InstanceProfile, ...]:
    """Return what a card of that model can be cut into; nothing if it can't be cut."""
    return _by_model().get(model.name, ())


def whole_card(model: Model) -> int:
    """Return the units of memory of a whole card; 0: it can't be cut."""
    return max((each.units for each in instance_profiles(model)), default=0)


CUTTING = Cutting(instance_profiles, instance_id, instance_uuid)
