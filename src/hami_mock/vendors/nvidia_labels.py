"""NVIDIA's labels as GPU feature discovery (GFD), its operator and its imitators write them.

GFD lets one model stand for all if a node has several. Here it is the one with the most cards, and
of several such the first by name; `gpu.count` then counts the cards of that model, as GFD's does.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping

from hami_mock.hami.kinds import MIG
from hami_mock.vendors import nvidia_mig
from hami_mock.vendors.catalog import Model
from hami_mock.vendors.label_text import label_value
from hami_mock.vendors.labelling import CardsHere, LabelledCard, LabelSet
from hami_mock.vendors.nvidia import VGA_CONTROLLERS
from hami_mock.vendors.nvidia_clouds import CLOUDS
from hami_mock.vendors.nvidia_mig_labels import instance_labels
from hami_mock.vendors.nvidia_versions import cuda

TIMESTAMP = "nvidia.com/gfd.timestamp"
_MACHINE = "hami-mock"
"""What a real node reads from its firmware."""
_MIG_CAPABLE = frozenset({"8.0", "9.0", "10.0", "10.3"})
_NVLINK_RACKS = frozenset({"GB200", "GB300"})
# One for all nodes of a cluster: a node can't know which others are in its rack.
_RACK = uuid.UUID("7d0a2f64-3b5e-5c1d-9e68-2a4c8f01b973")
_DEPLOYED = (
    "driver",
    "gpu-feature-discovery",
    "container-toolkit",
    "device-plugin",
    "dcgm",
    "dcgm-exporter",
    "node-status-exporter",
    "operator-validator",
)


def labels(wanted: LabelSet, here: CardsHere) -> Mapping[str, str]:
    make = _SETS.get(wanted) or CLOUDS.get(wanted)
    return make(here, standing(here)) if make else {}


def standing(here: CardsHere) -> tuple[LabelledCard, int]:
    """Return a card of the model that stands for all, and how many there are of it."""
    counts = Counter(card.model.product for card in here.cards)
    product = min(counts, key=lambda name: (-counts[name], name))
    card = next(card for card in here.cards if card.model.product == product)
    return card, counts[product]


_Standing = tuple[LabelledCard, int]


def _gfd(here: CardsHere, chosen: _Standing) -> dict[str, str]:
    card, count = chosen
    models = [each.model for each in here.cards]
    is_cut = here.mode == MIG and bool(nvidia_mig.profiles(card.model))
    shared = here.slots > 1 and not is_cut
    major, _, minor = card.model.compute.partition(".")
    told = {
        "gpu.product": label_value(card.model.product, *(["SHARED"] if shared else [])),
        "gpu.count": count,
        # GFD's number for cards that are cut, which aren't given out themselves.
        "gpu.replicas": 0 if is_cut else here.slots,
        "gpu.sharing-strategy": "time-slicing" if shared else "none",
        "gpu.memory": card.memory,
        "gpu.machine": _MACHINE,
        "gpu.mode": _mode(models),
        "mig.capable": str(any(map(_is_mig_capable, models))).lower(),
        "mps.capable": "false",
        "vgpu.present": "false",
        "gfd.timestamp": here.now,
        **_versions(here.driver),
    }
    if major:  # a model that only a real plugin knows has none
        told |= {
            "gpu.family": label_value(card.model.family),
            "gpu.compute.major": major,
            "gpu.compute.minor": minor,
        }
    if any(model.name in _NVLINK_RACKS for model in models):
        told["gpu.clique"] = f"{_RACK}.0"
    if here.mode == MIG:
        told |= {"mig.strategy": "mixed", **instance_labels(here.cards)}
    return {f"nvidia.com/{name}": str(value) for name, value in told.items()}


def _versions(full: str) -> dict[str, str]:
    """Return the driver's and CUDA's version, also under the names that GFD calls deprecated."""
    major, minor, revision = [*full.split("."), "", ""][:3]
    runtime = cuda(full)
    cuda_major, cuda_minor = runtime.split(".")
    return {
        "cuda.driver.major": major,
        "cuda.driver.minor": minor,
        "cuda.driver.rev": revision,
        "cuda.driver-version.major": major,
        "cuda.driver-version.minor": minor,
        "cuda.driver-version.revision": revision,
        "cuda.driver-version.full": full,
        "cuda.runtime.major": cuda_major,
        "cuda.runtime.minor": cuda_minor,
        "cuda.runtime-version.major": cuda_major,
        "cuda.runtime-version.minor": cuda_minor,
        "cuda.runtime-version.full": runtime,
    }


def _is_graphics(model: Model) -> bool:
    return model.name in VGA_CONTROLLERS


def _mode(models: list[Model]) -> str:
    kinds = set(map(_is_graphics, models))
    if len(kinds) > 1:
        return "unknown"
    return "graphics" if kinds.pop() else "compute"


def _is_mig_capable(model: Model) -> bool:
    return model.compute in _MIG_CAPABLE or bool(nvidia_mig.profiles(model))


def _operands(here: CardsHere, _chosen: _Standing) -> dict[str, str]:
    can_be_cut = any(_is_mig_capable(card.model) for card in here.cards)
    operands = (*_DEPLOYED, "mig-manager") if can_be_cut else _DEPLOYED
    return {f"nvidia.com/gpu.deploy.{operand}": "true" for operand in operands}


def _fake_gpu_operator(here: CardsHere, chosen: _Standing) -> dict[str, str]:
    card, count = chosen
    return {
        "nvidia.com/gpu.product": label_value(card.model.product),
        "nvidia.com/gpu.memory": str(card.memory),
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/mig.strategy": "mixed" if here.mode == MIG else "none",
        "run.ai/fake.gpu": "true",
    }


_SETS: Mapping[LabelSet, Callable[[CardsHere, _Standing], Mapping[str, str]]] = {
    LabelSet.GFD: _gfd,
    LabelSet.OPERATOR: lambda *_: {"nvidia.com/gpu.present": "true"},
    LabelSet.OPERATOR_DEPLOY: _operands,
    LabelSet.FAKE_GPU_OPERATOR: _fake_gpu_operator,
}
