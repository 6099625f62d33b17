"""What clouds call NVIDIA's cards; only of models that a cloud has, and by names it is known for.

Sources: Cluster Autoscaler's cloud providers, GKE's list of GPU types, Karpenter's instance types,
and AKS' reserved labels.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from hami_mock.vendors.labelling import CardsHere, LabelledCard, LabelSet


class _Row(NamedTuple):
    """A model at Google, at Amazon (two names, and the memory it tells), and whether at Azure."""

    gke: str = ""
    eks: str = ""
    ec2: str = ""
    ec2_memory: int = 0
    azure: bool = False


_V100, _A100 = "nvidia-tesla-v100", "nvidia-tesla-a100"
_MODELS = {
    "P100-PCIE-16GB": _Row("nvidia-tesla-p100", azure=True),
    "V100-PCIE-16GB": _Row(azure=True),
    "V100-SXM2-16GB": _Row(_V100, _V100, "v100", 16384),
    "V100-SXM2-32GB": _Row("", _V100, "v100", 32768, azure=True),
    "T4": _Row("nvidia-tesla-t4", "nvidia-tesla-t4", "t4", 16384, azure=True),
    "A10": _Row(azure=True),
    "A10G": _Row("", "nvidia-a10g", "a10g", 22888),
    "A100-SXM4-40GB": _Row(_A100, _A100, "a100", 40960, azure=True),
    "A100-PCIE-80GB": _Row(azure=True),
    "A100-SXM4-80GB": _Row("nvidia-a100-80gb", _A100, "a100", 81920, azure=True),
    "L4": _Row("nvidia-l4", "nvidia-l4", "l4", 22888),
    "L40S": _Row("", "nvidia-l40s", "l40s", 45776),
    "H100-SXM5-80GB": _Row("nvidia-h100-80gb", "", "h100", 81920, azure=True),
    "H100-NVL-94GB": _Row(azure=True),
    "H200-SXM-141GB": _Row("nvidia-h200-141gb", "", "h200", 144384, azure=True),
    "RTX-PRO-6000": _Row("nvidia-rtx-pro-6000", "", "rtx-pro-server-6000", 98304),
    "B200": _Row("nvidia-b200", "", "b200", 183359),
    "GB200": _Row("nvidia-gb200", azure=True),
    "B300": _Row("", "", "b300", 275040),
}
_NOWHERE = _Row()


def _gke(here: CardsHere, chosen: tuple[LabelledCard, int]) -> dict[str, str]:
    card, count = chosen
    name = _MODELS.get(card.model.name, _NOWHERE).gke
    if not name:
        return {}
    prefix = "cloud.google.com/gke"
    shared = {
        f"{prefix}-gpu-sharing-strategy": "time-sharing",
        f"{prefix}-max-shared-clients-per-gpu": str(here.slots),
    }
    return {
        f"{prefix}-accelerator": name,
        f"{prefix}-accelerator-count": str(count),
        **(shared if here.slots > 1 else {}),
    }


def _instance_gpu(prefix: str, chosen: tuple[LabelledCard, int]) -> dict[str, str]:
    card, count = chosen
    row = _MODELS.get(card.model.name, _NOWHERE)
    if not row.ec2:
        return {}
    return {
        f"{prefix}/instance-gpu-name": row.ec2,
        f"{prefix}/instance-gpu-manufacturer": "nvidia",
        f"{prefix}/instance-gpu-count": str(count),
        f"{prefix}/instance-gpu-memory": str(row.ec2_memory),
    }


def _eks(_here: CardsHere, chosen: tuple[LabelledCard, int]) -> dict[str, str]:
    name = _MODELS.get(chosen[0].model.name, _NOWHERE).eks
    accelerator = {"k8s.amazonaws.com/accelerator": name} if name else {}
    return accelerator | _instance_gpu("eks.amazonaws.com", chosen)


def _aks(_here: CardsHere, chosen: tuple[LabelledCard, int]) -> dict[str, str]:
    is_known = _MODELS.get(chosen[0].model.name, _NOWHERE).azure
    keys = ("kubernetes.azure.com/accelerator", "accelerator") if is_known else ()
    return dict.fromkeys(keys, "nvidia")


CLOUDS: Mapping[LabelSet, Callable[[CardsHere, tuple[LabelledCard, int]], Mapping[str, str]]] = {
    LabelSet.GKE: _gke,
    LabelSet.EKS: _eks,
    LabelSet.AKS: _aks,
    LabelSet.KARPENTER: lambda _, chosen: _instance_gpu("karpenter.k8s.aws", chosen),
}
