"""Nodes of Kubernetes, with annotations as HAMi's plugins of different ages write them."""

import json
from collections.abc import Mapping
from typing import Any

from hami_mock.node.sizing import Node
from hami_mock.settings.hami_config import device_config
from hami_mock.settings.settings import Settings, load
from hami_mock.sources.annotated.derive import Before, Derived, derive
from tests.unit.builders import NODE

NVIDIA = "hami.io/node-nvidia-register"
DCU = "hami.io/node-dcu-register"
ILUVATAR = "hami.io/node-MR-V100-register"
ASCEND = "hami.io/node-register-Ascend910B3"
ENFLAME = "enflame.com/gcu-drs-capacity"
METAX = "metax-tech.com/node-gpu-devices"
XPU = "hami.io/node-register-xpu"
AMD = "hami.io/node-amd-register"

# Captured from nodes, or as HAMi's documentation shows them; IDs shortened.
SAMPLES = {
    "JSON of HAMi 2.10": (
        NVIDIA,
        '[{"id":"GPU-1","count":10,"devmem":32768,"devcore":100,'
        '"type":"NVIDIA-Tesla V100-PCIE-32GB","mode":"hami-core","health":true},'
        '{"id":"GPU-2","index":1,"count":10,"devmem":32768,"devcore":100,'
        '"type":"NVIDIA-Tesla V100-PCIE-32GB","numa":1,"mode":"hami-core","health":true}]',
        {
            "nvidia.com/gpucores": 200,
            "nvidia.com/gpumem": 65536,
            "nvidia.com/gpumem-percentage": 200,
        },
    ),
    "seven fields": (
        NVIDIA,
        "GPU-00552014-5c87-89ac-b1a6-7b53aa24b0ec,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:"
        "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:",
        {
            "nvidia.com/gpucores": 200,
            "nvidia.com/gpumem": 65536,
            "nvidia.com/gpumem-percentage": 200,
        },
    ),
    "nine fields": (
        NVIDIA,
        "GPU-1,10,49140,100,NVIDIA-NVIDIA L40S,0,true,0,hami-core:"
        "GPU-2,10,49140,150,NVIDIA-NVIDIA L40S,1,true,1,hami-core:",
        {
            "nvidia.com/gpucores": 250,
            "nvidia.com/gpumem": 98280,
            "nvidia.com/gpumem-percentage": 200,
        },
    ),
    "MIG": (
        NVIDIA,
        '[{"id":"GPU-1","count":7,"devmem":40960,"devcore":100,"type":"NVIDIA A100-SXM4-40GB",'
        '"mode":"mig","migProfiles":[{"name":"3g.20gb","memoryMB":19968,"core":43,"sliceCount":3,'
        '"placements":[{"start":0,"size":4},{"start":4,"size":4}]}],"health":true}]',
        {
            "nvidia.com/gpucores": 100,
            "nvidia.com/gpumem": 40960,
            "nvidia.com/gpumem-percentage": 100,
        },
    ),
    "Hygon": (
        DCU,
        "DCU-TBBA1234,4,65520,100,DCU-K100_AI,0,true,0,hami:"
        "DCU-TBBA1235,4,65520,100,DCU-K100_AI,0,true,1,hami:",
        {"hygon.com/dcumem": 131040, "hygon.com/dcucores": 200},
    ),
    "Ascend": (
        ASCEND,
        '[{"id":"0E3A8B1C-20304050","index":4,"count":4,"devmem":65536,"devcore":20,'
        '"type":"Ascend910B3","health":true,"custominfo":{"NetworkID":1}}]',
        {"huawei.com/Ascend910B3-memory": 65536},
    ),
    "Iluvatar": (
        ILUVATAR,
        "GPU-i1,10,32768,100,MR-V100,0,true,0,:",
        {"iluvatar.ai/MR-V100.vCore": 100, "iluvatar.ai/MR-V100.vMem": 128},
    ),
    "Metax": (
        METAX,
        '[{"uuid":"GPU-m1","bdf":"0000:1b:00.0","model":"MXC500","totalDevCount":16,'
        '"totalCompute":100,"totalVRam":65536,"availableVRam":1024,"numa":1,"healthy":true,'
        '"qosPolicy":"best-effort","linkZone":1}]',
        {"metax-tech.com/vmemory": 64, "metax-tech.com/vcore": 100},
    ),
    "Enflame": (
        ENFLAME,
        '{"devices":[{"index":"0","minor":"0","capacity":6}],"profiles":{"6g.48gb":"0"}}',
        {"enflame.com/gcu-memory": 48, "enflame.com/gcu-core": 100},
    ),
    "Kunlunxin": (
        XPU,
        '[{"id":"xpu-0","count":4,"devmem":98304,"devcore":100,"type":"XPU","health":true}]',
        {"kunlunxin.com/vxpu-memory": 98304},
    ),
    # A card has 304 compute units, and pods ask for percent.
    "AMD": (
        AMD,
        '[{"id":"GPU-a","count":10,"devmem":196288,"devcore":304,"type":"AMD Instinct MI300X",'
        '"health":true}]',
        {"amd.com/gpumem": 196288, "amd.com/gpucores": 100},
    ),
}


def card(card_id: str, **changes: Any) -> dict[str, Any]:
    """A card of NVIDIA's annotation."""
    return {
        "id": card_id,
        "count": 10,
        "devmem": 32768,
        "devcore": 100,
        "type": "NVIDIA-V100",
        "health": True,
        **changes,
    }


def cards(*rows: Mapping[str, Any]) -> dict[str, str]:
    """NVIDIA's annotation."""
    return {NVIDIA: json.dumps(rows)}


def node(
    annotations: Mapping[str, Any] | None = None,
    *,
    allocatable: Mapping[str, Any] | None = None,
    capacity: Mapping[str, Any] | None = None,
    version: str = "v1.35.8",
) -> dict[str, Any]:
    return {
        "metadata": {"name": NODE, "annotations": dict(annotations or {})},
        "status": {
            "capacity": dict(capacity or {}),
            "allocatable": dict(allocatable or {}),
            "nodeInfo": {"kubeletVersion": version},
        },
    }


def settings(**flags: object) -> Settings:
    values = {name.replace("_", "-"): str(value) for name, value in flags.items()}
    return load({"node-name": NODE, **values})


def derived(
    document: Mapping[str, Any], before: Before | None = None, config: str = "", **flags: object
) -> Derived:
    parsed = device_config.parse(config, "config") if config else None
    return derive(document, settings(**flags), before or Before(), parsed)


def numbers(node: Node) -> dict[str, int]:
    return {resource.name: resource.count for resource in node.resources}
