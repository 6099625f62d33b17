"""What HAMi's and NVIDIA's DRA drivers publish of NVIDIA's cards.

HAMi's k8s-dra-driver shares a card by memory and cores. NVIDIA's gives cards whole; of a card in
MIG mode it publishes what was cut out, or, where nothing was, all that could be, with counters that
keep the parts from overlapping.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from hami_mock.vendors.catalog import Model
from hami_mock.vendors.dra import (
    MI,
    Attribute,
    Capacity,
    CardHere,
    ClaimHere,
    Device,
    DraDriver,
    Given,
    Place,
    Profile,
    Version,
)
from hami_mock.vendors.instance_profile import InstanceProfile
from hami_mock.vendors.nvidia_boards import board
from hami_mock.vendors.nvidia_versions import cuda

_HAMI = "hami-core-gpu.project-hami.io"
_STANDARD = "resource.kubernetes.io"
_BRANDS = {"nvidia": "Nvidia", "tesla": "Tesla", "geforce": "GeForce"}
_CACHES = "/usr/local/vgpu/claims"
_ENGINES = {
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpegs",
    "ofaEngines": "ofas",
}
"""The capacities of an instance but memory, and what its profile calls them."""
_COUNTERS = {
    "copyEngines": "copy-engines",
    "jpegEngines": "jpeg-engines",
    "ofaEngines": "ofa-engines",
}


def _common(here: CardHere) -> dict[str, Attribute]:
    model = here.card.model
    brand = board(model).brand
    return {
        "productName": model.product[:64],
        "brand": _BRANDS.get(brand, brand),
        "architecture": _architecture(model),
        "cudaComputeCapability": Version.of(model.compute or "0"),
        "driverVersion": Version.of(here.driver_version),
        "cudaDriverVersion": Version.of(cuda(here.driver_version)),
    }


def _architecture(model: Model) -> str:
    return model.family.replace("-", " ").title()


def _bus_id(here: CardHere) -> str:
    """Return where a card is plugged in as Linux writes it: 0000:1b:00.0."""
    return here.card.pci_bus_id[4:].lower()


def _root(here: CardHere) -> str:
    return f"pci{_bus_id(here)[:7]}"


def _hami_devices(here: CardHere) -> Iterator[Device]:
    card = here.card
    yield Device(
        f"hami-gpu-{card.minor}",
        {
            "type": "hami-gpu",
            "uuid": card.uuid[:64],
            "minor": card.minor,
            **_common(here),
            "pcieBusID": _bus_id(here),
            f"{_STANDARD}/pcieRoot": _root(here),
        },
        {
            "cores": Capacity(100, 1, is_binary=False),
            "memory": Capacity(card.memory * MI, MI, MI),
        },
        is_shared=True,
    )


def _nvidia_devices(here: CardHere) -> Iterator[Device]:
    attributes = _common(here) | {
        f"{_STANDARD}/pciBusID": _bus_id(here),
        f"{_STANDARD}/pcieRoot": _root(here),
    }
    if here.card.numa is not None:
        attributes[f"{_STANDARD}/numaNode"] = here.card.numa
    if here.places:
        # What was cut by hand is there for good: the card itself isn't.
        yield from (_static(here, place, attributes) for place in here.places)
        return
    whole = {"type": "gpu", "uuid": here.card.uuid[:64], **attributes}
    name = f"gpu-{here.card.minor}"
    if here.places is None or not here.possible:
        yield Device(name, whole, {"memory": Capacity(here.card.memory * MI)})
        return
    most = _most(place.profile for place in here.possible)
    units = max(place.profile.units for place in here.possible)
    yield Device(name, whole, most, consumes=_counters(most, 0, units))
    for place in here.possible:
        capacity = _capacity(place.profile)
        yield Device(
            _instance_name(here, place),
            _instance_attributes(here, place, attributes),
            capacity,
            consumes=_counters(capacity, place.start, place.profile.units),
            place=place,
        )


def _static(here: CardHere, place: Place, attributes: Mapping[str, Attribute]) -> Device:
    own = range(place.start, place.start + place.profile.units)
    return Device(
        _instance_name(here, place),
        {**_instance_attributes(here, place, attributes), "uuid": place.uuid},
        _capacity(place.profile) | {f"memorySlice{unit}": Capacity(1) for unit in own},
        place=place,
    )


def _instance_name(here: CardHere, place: Place) -> str:
    profile = place.profile
    name = profile.name.replace(".", "").replace("+", "-").lower()
    return f"gpu-{here.card.minor}-mig-{name}-{profile.id}-{place.start}"


def _instance_attributes(
    here: CardHere, place: Place, attributes: Mapping[str, Attribute]
) -> dict[str, Attribute]:
    parent = here.card.uuid[:64]
    return {"type": "mig", "parentUUID": parent, "profile": place.profile.name, **attributes}


def _capacity(profile: InstanceProfile) -> dict[str, Capacity]:
    counts = {name: Capacity(getattr(profile, of)) for name, of in _ENGINES.items()}
    return counts | {"memory": Capacity(profile.memory * MI)}


def _most(profiles: Any) -> dict[str, Capacity]:
    each = [_capacity(profile) for profile in profiles]
    return {name: max(one[name] for one in each) for name in each[0]}


def _counters(capacity: Mapping[str, Capacity], start: int, units: int) -> dict[str, int]:
    counters = {_COUNTERS.get(name, name): each.value for name, each in capacity.items()}
    return counters | {f"memory-slice-{unit}": 1 for unit in range(start, start + units)}


def _visible(given: Sequence[Given]) -> dict[str, str]:
    names = dict.fromkeys(each.place.uuid if each.place else each.card.uuid for each in given)
    return {"NVIDIA_VISIBLE_DEVICES": ",".join(names)}


def _hami_environment(given: Sequence[Given], claim: ClaimHere) -> Mapping[str, str]:
    found = _visible(given)
    # Named after the claim, as its holdings are: NVML shows a container what all with it use.
    found["CUDA_DEVICE_MEMORY_SHARED_CACHE"] = f"{_CACHES}/{claim.uid}/{claim.uid}.cache"
    # A limit goes by the card's position among the visible ones, and those are of one request.
    for position, uuid in enumerate(dict.fromkeys(each.card.uuid for each in given)):
        own = [each for each in given if each.card.uuid == uuid]
        found[f"CUDA_DEVICE_SM_LIMIT_{position}"] = str(min(sum(each.cores for each in own), 100))
        found[f"CUDA_DEVICE_MEMORY_LIMIT_{position}"] = f"{sum(each.memory for each in own)}m"
    return found


def _is_cut(attributes: Mapping[str, object], capacity: Container[str]) -> bool:
    """Tell whether a whole card is one whose parts are devices too: it has their capacities."""
    return attributes.get("type") == "gpu" and "multiprocessors" in capacity


DRIVERS = {
    Profile.HAMI: DraDriver(
        _HAMI, _hami_devices, _hami_environment, lambda _: (_HAMI,), cores="cores",
        shares=lambda _: True,
    ),
    Profile.NVIDIA: DraDriver(
        "gpu.nvidia.com",
        _nvidia_devices,
        lambda given, _: _visible(given),
        lambda attributes: (f"{attributes.get('type')}.nvidia.com",),
        counts=_is_cut,
    ),
}  # fmt: skip
